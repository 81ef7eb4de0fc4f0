import type { Problem, ProblemCode, RefusalRule } from "@holdpoint/protocol";
import { showId } from "@holdpoint/store";
import type { MovedBy } from "@holdpoint/store/read";
import { showActor, shown } from "./show.ts";

type Extras = Pick<Problem, "rule" | "event" | "runStatus" | "decided" | "mistakes">;

/** An answer that is no success; what the caller reads. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  readonly extras: Extras;
  constructor(status: number, code: ProblemCode, { detail, ...extras }: { readonly detail: string } & Extras) {
    super(detail);
    this.name = "ApiProblem";
    this.status = status;
    this.code = code;
    this.extras = extras;
  }
}

const TITLES: Readonly<Record<ProblemCode, string>> = {
  refused: "Refused",
  invalid_decision: "The decision does not fit the call",
  invalid_request: "The request is not valid",
  malformed_body: "The body cannot be read",
  body_too_large: "The body is too large",
  unsupported_media_type: "The body's media type is not known here",
  unauthenticated: "Nobody is named",
  forbidden: "Not allowed",
  not_found: "Not found",
  agent_unknown: "The agent is not known",
  idempotency_key_reused: "The idempotency key was used for something else",
  removed: "Removed",
  unavailable: "Not available at present",
  internal: "Something went wrong here",
};

/** The problem as it is sent. */
export function toBody({ status, code, message, extras }: ApiProblem, requestId: string): Problem {
  return {
    type: `urn:holdpoint:problem:${code}`,
    title: TITLES[code],
    status,
    detail: message,
    code,
    requestId,
    ...extras,
  };
}

export function unauthenticated(what: string): ApiProblem {
  return new ApiProblem(401, "unauthenticated", { detail: `Send ${what}: Authorization: Bearer <token>.` });
}

export function notFound(what: string): ApiProblem {
  return new ApiProblem(404, "not_found", { detail: `There is no such ${what}, or it is not yours to see.` });
}

/** The same request came so long ago that its run was removed; it is not made again. */
export function removedRun(runId: string, removedAtMs: number): ApiProblem {
  return new ApiProblem(410, "removed", {
    detail:
      `This Idempotency-Key came with the same request before. Its run ${showId("run", runId)} has ended, was kept for its ` +
      `time, and was removed at ${shown(removedAtMs)}. It does not run again: to do it anew, use a new key.`,
  });
}

/** What was refused, and who did what before, so that it is not possible any more. */
export interface Refused {
  readonly rule: RefusalRule;
  readonly event: string;
  readonly runStatus: string;
  readonly decided: Problem["decided"];
  /** How far it has come, where nothing was decided for good. */
  readonly soFar?: string | undefined;
}

/** Rules about who somebody is: the same person asking again later is refused again. */
const ABOUT_THE_CALLER: ReadonlySet<RefusalRule> = new Set(["own_request", "not_an_approver"]);

/** A refusal that the store has recorded. */
export function refused({ rule, event, runStatus, decided, soFar }: Refused): ApiProblem {
  const done = decided === undefined ? soFar : `${decided.what} by ${decided.by} at ${decided.at}`;
  const by = done === undefined ? "" : ` (${done})`;
  const detail = `${RULES[rule].replace("{status}", runStatus)}${by}`;
  return new ApiProblem(ABOUT_THE_CALLER.has(rule) ? 403 : 409, "refused", {
    detail,
    rule,
    event,
    runStatus,
    ...(decided === undefined ? {} : { decided }),
  });
}

/** A rule that is not about a run, so that no run's history has it. */
export function refusedRule(rule: RefusalRule, more = ""): ApiProblem {
  return new ApiProblem(409, "refused", { detail: `${RULES[rule]} ${more}`.trim(), rule });
}

/** The transition that brought a run's present status, in the words of a problem. */
export function movedByOf({ actorKind, actorId, atMs }: MovedBy, status: string): NonNullable<Problem["decided"]> {
  const actor = showActor(actorKind, actorId);
  return { by: `${actor.kind} ${actor.id}`, what: status, at: shown(atMs) };
}

/** What each rule means, and what to do. */
const RULES: Readonly<Record<RefusalRule, string>> = {
  already_submitted: "The run was submitted before.",
  run_ended: "The run has ended, and an ended run never changes. To do it again, retry it as a new run.",
  not_owned: "Only the run's owner may do this.",
  not_paused: "The run is not paused.",
  effect_unsettled:
    "Nobody knows yet whether the run's last call acted. Wait for its look-up, or settle it as an operator.",
  effect_not_open: "No call of the run is open, so there is nothing to settle.",
  children_live: "The run has child runs that have not ended. Stop them first.",
  nothing_to_skip: "The run does not wait for a call that could be skipped.",
  choice_not_offered: "This choice is not offered while the run is {status}; its `actions` say what is.",
  not_yours_to_raise: "Your part in this run does not allow this; its `actions` say what it does.",
  nothing_asked: "The run has not asked anything.",
  no_approval_pending: "No approval request of the run is open.",
  run_not_ended: "Only an ended run can be done again. Cancel it first.",
  attempt_open: "A call of the run is still open; settle it first.",
  line_is_live: "Another run of the same line has not ended; only one at a time may do it again.",
  instance_is_live: "Another run of this agent has not ended under the same instance key; one at a time may.",
  retried_run_is_over:
    "A workflow that is {status} is never resumed, and not done again: its results stand. Submit it anew instead.",
  not_a_workflow: "Only the run of a workflow goes by a version that can be changed; this is an agent's or a task's.",
  hold_is_over: "The question that this answers is over; look at the run and answer what it asks now.",
  not_an_approver: "You are not among those who may decide this request.",
  own_request: "Nobody approves a request of a run that they asked for or steer. Ask somebody else.",
  hash_mismatch: "The decision was made on other arguments than the ones that would run. Look at the request again.",
  already_decided: "The request was decided before; the first decision counts.",
  approval_expired: "The time to decide this request is over.",
  approval_withdrawn: "The request was withdrawn, since the run went another way.",
  approval_superseded: "Somebody has changed the arguments since; there is another request for what they are now.",
  decision_not_offered: "The rule that asks does not offer this decision; the request's `decisions` say what it does.",
  nothing_to_escalate_to: "Nobody is left to pass this request on to.",
  edit_denied: "A rule forbids the call with these arguments, so nobody can approve them.",
  rule_in_force: "A rule of this name is in force already. Lift it first, or take another name.",
  schedule_exists: "There is a schedule of this name. Change it, delete it first, or take another name.",
  schedule_is_over: "Its instant has passed during the pause. Change `at`, or run it by hand.",
  too_many_live_runs: "Too many runs of this schedule have not ended. Wait for them, or cancel some.",
  deadline_passed: "The deadline has passed.",
  attempt_not_named:
    "Name the open attempts that you speak of in `attempts`: exactly one, or for `terminate` all of them.",
  nobody_owns_it: "No worker has the run, so there is nothing to take from one; `runs explain` says what it waits for.",
  worker_gone: "The worker has ended, or was declared gone; its runs have gone to others.",
  task_taken: "Somebody else has the task in hands.",
  task_not_queued: "The task waits for nobody to start it: it is {status}.",
  task_not_started: "The task has not been started with this token. Start it first.",
  task_token_stale: "The token is of an earlier time: somebody else has had the task since. Stop working on it.",
  stop_not_asked: "Nobody has asked the task to stop. Say how it ended, or give it back with `release`.",
  task_name_taken: "This name and version is known as what workers do. Take another name or version.",
  webhook_exists: "There is a webhook of this name. Disable it first, or take another name.",
  too_many_webhooks: "There are as many webhooks as there may be. Disable one that nobody needs any more.",
  webhook_disabled: "The webhook was disabled, and is told nothing any more.",
  already_delivered: "The delivery has come through: there is nothing to send or to dismiss.",
  busy: "The run kept changing while this was tried. Try again.",
};
