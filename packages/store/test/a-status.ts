// Runs in each status, made by the store's own verbs.

import { type Actor, advance, type Call, type Hold, type JsonValue, type StepBody } from "@holdpoint/core";
import {
  type ApprovalRequest,
  commitSteps,
  type LoadedRun,
  loadRun,
  type Move,
  newId,
  type Run,
  requestCancel,
  requestPause,
  type StepCommit,
  type Store,
  transitionOne,
} from "../src/index.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aStart, aWorker, claim, OPERATOR, SWEEPER } from "./a-run.ts";

export const MINUTE_MS = 60_000;

export const QUESTION: Hold = {
  kind: "input",
  waitingFor: { kind: "requester", principal: "alice", subject: null, reason: "question" },
  deadline: { inMs: MINUTE_MS },
  onDeadline: "no_answer",
};

export const APPROVAL: Hold = {
  kind: "approval",
  waitingFor: { kind: "approvers", principal: "role:manager", subject: null, reason: "over_limit" },
  deadline: { inMs: MINUTE_MS },
  onDeadline: "reject",
};

export const DEPENDENCY: Hold = {
  kind: "dependency",
  waitingFor: { kind: "service", principal: "payments", subject: null, reason: "pending" },
  deadline: { inMs: MINUTE_MS },
  onDeadline: "operator",
};

export function operatorHold(reason: string, subject: string | null = null): Hold {
  return {
    kind: "operator",
    waitingFor: { kind: "operator", principal: "role:operator", subject, reason },
    deadline: { inMs: MINUTE_MS },
    onDeadline: "escalate",
  };
}

/** A request for the release of a call by a manager, not by the requester. */
export function aRequest(call: Call, overrides: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    id: newId(),
    callId: call.id,
    tool: call.tool,
    args: "{}",
    argsHash: call.argsHash,
    rule: "over_limit",
    roles: ["manager"],
    users: [],
    excluded: ["alice"],
    deadlineMs: MINUTE_MS,
    onDeadline: "reject",
    validForMs: MINUTE_MS,
    ...overrides,
  };
}

/** The worker that has claimed this run, as an actor. */
export function ownerOf({ run }: LoadedRun): Actor {
  if (run.state.owner === null) throw new Error("the run has no owner");
  return { kind: "worker", id: run.state.owner };
}

/** A run that a worker of its own has claimed. */
export async function aClaimedRun(store: Store, options: { sessionId?: string } = {}): Promise<LoadedRun> {
  const run = await aRun(store, options);
  return claim(store, run.id, await aWorker(store));
}

/** A claimed run whose model has asked for these calls. */
export async function aPlannedRun(store: Store, calls: readonly Call[]): Promise<LoadedRun> {
  const claimed = await aClaimedRun(store);
  return took(store, claimed, { steps: [aReply(calls)], calls });
}

/** Commits for the run's owner, which must be taken; gives the rows as they are afterwards. */
export async function took(store: Store, claimed: LoadedRun, commit: Partial<StepCommit>): Promise<LoadedRun> {
  const steps: readonly StepBody[] = [...(commit.steps ?? []), ...(commit.start ? [commit.start.body] : [])];
  const calls = [...claimed.calls, ...(commit.calls ?? [])];
  const checkpoint = steps.reduce(
    (cursor, body, index) => advance(cursor, { seq: claimed.run.stepSeq + index + 1, body }, calls),
    claimed.run.checkpoint,
  );
  const [result] = await commitSteps(store, [aCommit(claimed, { checkpoint, ...commit })]);
  if (result === undefined || result instanceof Error || result.result !== "taken") {
    throw new Error(`the commit was not taken: ${JSON.stringify(result)}`, { cause: result });
  }
  if (commit.start && !result.started) throw new Error("the start was refused");
  return reload(store, claimed.run.id);
}

export async function reload(store: Store, runId: string): Promise<LoadedRun> {
  const loaded = await loadRun(store, runId);
  if (loaded === null) throw new Error(`there is no run ${runId}`);
  return loaded;
}

/** Moves a run, which must be accepted. */
export async function moved(store: Store, move: Move): Promise<Run> {
  const result = await transitionOne(store, move);
  if (result.result !== "accepted") throw new Error(`the move was not accepted: ${JSON.stringify(result)}`);
  return result.run;
}

/** A claimed run with an attempt of an effect that is open. */
export async function anOpenEffect(
  store: Store,
  call: Call = aCall(),
): Promise<{ readonly claimed: LoadedRun; readonly call: Call; readonly attemptId: string }> {
  const start = aStart(call);
  const claimed = await took(store, await aPlannedRun(store, [call]), { start, progress: false });
  return { claimed, call, attemptId: start.attemptId };
}

/** Loses a run and recovers it, as a sweep does in one statement. */
export function lose(store: Store, run: Run, reason = "lease_expired"): Promise<Run> {
  return moved(store, { run, actor: SWEEPER, events: [{ type: "OwnerGone", reason }, { type: "Recovered" }] });
}

/** A run whose worker is gone with an attempt open. */
export async function anUnknownRun(store: Store, call: Call = aCall()) {
  const { claimed, attemptId } = await anOpenEffect(store, call);
  return { run: await lose(store, claimed.run), worker: ownerOf(claimed), call, attemptId };
}

/** A run that its owner holds. */
export async function aHeldRun(store: Store, hold: Hold): Promise<Run> {
  const claimed = await aClaimedRun(store);
  return moved(store, { run: claimed.run, actor: ownerOf(claimed), events: [{ type: "Held", hold }] });
}

/** A run that waits for the approval of calls; each call's request in order. */
export async function anAskingRun(
  store: Store,
  options: { readonly calls?: readonly Call[]; readonly request?: Partial<ApprovalRequest>; readonly hold?: Hold } = {},
) {
  const calls = options.calls ?? [aCall()];
  const claimed = await aPlannedRun(store, calls);
  const requests = calls.map((call) => aRequest(call, options.request));
  const run = await moved(store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "Held", hold: options.hold ?? APPROVAL }],
    writes: { requests },
  });
  const [request] = requests;
  const [call] = calls;
  if (request === undefined || call === undefined) throw new Error("there must be a call");
  return { run, requests, request, calls, call };
}

/** A run that waits for an operator about an open attempt that nobody can look up. */
export async function anUnknownAtOperator(store: Store) {
  const { run, attemptId, call, worker } = await anUnknownRun(store);
  const claimed = await claim(store, run.id, await aWorker(store));
  const held = await moved(store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null }],
  });
  return { run: held, attemptId, call, worker };
}

/** A run in each status. */
export const RUNS: Readonly<Record<Run["state"]["status"], (store: Store) => Promise<Run>>> = {
  queued: (store) => aRun(store),
  running: async (store) => (await aClaimedRun(store)).run,
  waiting_input: (store) => aHeldRun(store, QUESTION),
  waiting_approval: async (store) => (await anAskingRun(store)).run,
  waiting_dependency: (store) => aHeldRun(store, DEPENDENCY),
  waiting_operator: (store) => aHeldRun(store, operatorHold("call_failed", newId())),
  retrying: (store) => released(store, MINUTE_MS),
  outcome_unknown: async (store) => (await anUnknownRun(store)).run,
  paused: async (store) => {
    const { id } = await aHeldRun(store, QUESTION);
    return accepted(await requestPause(store, { runId: id, actor: OPERATOR }));
  },
  lost: async (store) => {
    const { run } = await aClaimedRun(store);
    return moved(store, { run, actor: SWEEPER, events: [{ type: "OwnerGone", reason: "wedged" }] });
  },
  cancelling: async (store) => {
    const { claimed } = await anOpenEffect(store);
    return accepted(await requestCancel(store, { runId: claimed.run.id, actor: ALICE, reason: null }));
  },
  completed: (store) => ended(store, "completed"),
  failed: (store) => ended(store, "failed"),
  cancelled: async (store) => {
    const { id } = await aRun(store);
    return accepted(await requestCancel(store, { runId: id, actor: ALICE, reason: "changed my mind" }));
  },
};

/** A run that is tried again in `retryInMs`. */
export async function released(store: Store, retryInMs: number): Promise<Run> {
  const claimed = await aClaimedRun(store);
  const retryAt = { inMs: retryInMs };
  return moved(store, { run: claimed.run, actor: ownerOf(claimed), events: [{ type: "Released", retryAt }] });
}

export async function ended(store: Store, status: "completed" | "failed"): Promise<Run> {
  return endBy(store, await aClaimedRun(store), status);
}

/** Its owner ends the run. */
export function endBy(store: Store, claimed: LoadedRun, status: "completed" | "failed" = "completed"): Promise<Run> {
  const outcome = status === "completed" ? ({ kind: "succeeded" } as const) : null;
  const reason = status === "failed" ? "no_such_order" : null;
  return moved(store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "Ended", status, outcome, reason }],
  });
}

export function accepted(answer: { readonly result: string; readonly run?: Run }): Run {
  if (answer.result !== "accepted" || answer.run === undefined)
    throw new Error(`not accepted: ${JSON.stringify(answer)}`);
  return answer.run;
}

/** The result of a call, as a step. */
export function aResult(call: Call, output: JsonValue = "done"): Extract<StepBody, { kind: "tool_result" }> {
  return { kind: "tool_result", callId: call.id, result: "succeeded", output };
}
