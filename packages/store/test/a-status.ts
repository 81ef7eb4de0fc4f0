// Runs in each status, made by the store's own verbs.

import {
  type Actor,
  type ApprovalRule,
  advance,
  type Call,
  type Hold,
  holdOf,
  type JsonValue,
  type LostReason,
  type StepBody,
} from "@holdpoint/core";
import {
  type ApprovalRequest,
  commitSteps,
  decideApproval,
  type LoadedRun,
  loadRun,
  type Move,
  newId,
  type RegisteredTool,
  type Run,
  requestCancel,
  requestPause,
  type Store,
  transitionOne,
} from "../src/index.ts";
import {
  ALICE,
  aCall,
  aCommit,
  aReply,
  aRun,
  aStart,
  aWorker,
  type Carried,
  claim,
  MANAGER,
  OPERATOR,
  SWEEPER,
} from "./a-run.ts";

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

/** The decision of one manager, within a minute. */
export const TERMS: ApprovalRule = {
  rule: "over_limit",
  approvers: { roles: ["manager"], users: [] },
  quorum: 1,
  veto: true,
  fourEyes: true,
  decisions: ["approve", "approve_with_edits", "reject", "reject_and_abort", "respond", "skip", "escalate"],
  answerSchema: null,
  deadlineMs: MINUTE_MS,
  onDeadline: "reject",
  remindAfterMs: [],
  escalation: [],
  validForMs: MINUTE_MS,
};

export const SHOWN: ApprovalRequest["request"] = {
  redactedArgs: {},
  modelReason: null,
  amount: null,
  risk: null,
  evidence: [],
  editSchema: null,
};

/** How a request of a test differs from the usual one. */
export type Asked = Partial<Omit<ApprovalRequest, "terms">> & { readonly terms?: Partial<ApprovalRule> };

/** A request for the release of a call by a manager, not by the requester. */
export function aRequest(call: Call, { terms, ...overrides }: Asked = {}): ApprovalRequest {
  return {
    id: newId(),
    callId: call.id,
    tool: call.tool,
    args: "{}",
    argsHash: call.argsHash,
    terms: { ...TERMS, ...terms },
    request: SHOWN,
    excluded: ["alice"],
    editedBy: null,
    approval: null,
    ...overrides,
  };
}

/** The worker that has claimed this run, as an actor. */
export function ownerOf({ run }: LoadedRun): Actor {
  if (run.state.owner === null) throw new Error("the run has no owner");
  return { kind: "worker", id: run.state.owner };
}

/** A run that a worker of its own has claimed. */
export async function aClaimedRun(
  store: Store,
  options: { sessionId?: string; tools?: readonly RegisteredTool[] } = {},
): Promise<LoadedRun> {
  const run = await aRun(store, options);
  return claim(store, run.id, await aWorker(store));
}

/** A claimed run whose model has asked for these calls. */
export async function aPlannedRun(
  store: Store,
  calls: readonly Call[],
  tools: readonly RegisteredTool[] = [],
): Promise<LoadedRun> {
  const claimed = await aClaimedRun(store, { tools });
  return took(store, claimed, { steps: [aReply(calls)], calls });
}

/** Commits for the run's owner, which must be taken; gives the rows as they are afterwards. */
export async function took(store: Store, claimed: LoadedRun, commit: Carried): Promise<LoadedRun> {
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
export function lose(store: Store, run: Run, reason: LostReason = "lease_expired"): Promise<Run> {
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
  options: {
    readonly calls?: readonly Call[];
    /** How the requests differ from the usual ones: all of them, or each by its place. */
    readonly request?: Asked | readonly Asked[];
    readonly hold?: Hold;
    readonly tools?: readonly RegisteredTool[];
  } = {},
) {
  const { calls = [aCall()], request: asked = {} } = options;
  const claimed = await aPlannedRun(store, calls, options.tools);
  const requests = calls.map((call, index) => aRequest(call, isList(asked) ? asked[index] : asked));
  const [request] = requests;
  const [call] = calls;
  if (request === undefined || call === undefined) throw new Error("there must be a call");
  const pending = requests.map(({ terms, ...each }) => {
    return { ...each, terms, level: 0, extended: false, deadlineMs: terms.deadlineMs };
  });
  const inMs = Math.min(...pending.map(({ deadlineMs }) => deadlineMs));
  const hold = { ...holdOf(pending), deadline: { inMs } };
  const run = await moved(store, {
    run: claimed.run,
    actor: ownerOf(claimed),
    events: [{ type: "Held", hold: options.hold ?? hold }],
    writes: { requests },
  });
  return { run, requests, request, calls, call };
}

function isList(asked: Asked | readonly Asked[]): asked is readonly Asked[] {
  return Array.isArray(asked);
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

/** A call that a person has to release. */
export function aGatedCall(overrides: Partial<Call> = {}): Call {
  return aCall({ verdict: { kind: "needs_approval", approval: TERMS }, ...overrides });
}

/** A run whose gated call a manager has approved, and a worker has started. */
export async function aSpendingRun(store: Store, call: Call = aGatedCall()) {
  const { run, request } = await anAskingRun(store, { calls: [call] });
  const { id: approvalId, argsHash } = request;
  accepted(await decideApproval(store, { approvalId, decision: "approve", argsHash, note: null, actor: MANAGER }));
  const start = aStart(call, 1, approvalId);
  const claimed = await claim(store, run.id, await aWorker(store));
  return { run, request, call, start, claimed: await took(store, claimed, { start, progress: false }) };
}
