import {
  type Actor,
  type AgentRef,
  type Call,
  canonicalJson,
  EMPTY_CHECKPOINT,
  type JsonValue,
  type StepBody,
} from "@holdpoint/core";
import {
  type Claim,
  claimRuns,
  createSession,
  type EffectStart,
  grantRoles,
  isUnloaded,
  type LoadedRun,
  newId,
  operationIdOf,
  type RegisteredTool,
  type Run,
  registerAgent,
  registerWorker,
  type StepCommit,
  type Store,
  submitRun,
} from "../src/index.ts";

export const AGENT = { name: "refunds", version: "1" };
export const ALICE: Actor = { kind: "requester", id: "alice" };
export const MANAGER: Actor = { kind: "approver", id: "mona" };
export const OTHER_MANAGER: Actor = { kind: "approver", id: "max" };
export const THIRD_MANAGER: Actor = { kind: "approver", id: "mira" };
export const DIRECTOR: Actor = { kind: "approver", id: "dora" };
export const OPERATOR: Actor = { kind: "operator", id: "olga" };
export const SWEEPER: Actor = { kind: "sweeper", id: "sweeper-1" };

/** Makes the people of the tests what they are. */
export function grantAll(store: Store): Promise<void> {
  const managers = [MANAGER, OTHER_MANAGER, THIRD_MANAGER].map(({ id }) => ({ user: id, role: "manager" }));
  return grantRoles(store, { grants: [...managers, { user: DIRECTOR.id, role: "director" }], by: "test" });
}

/** A queued run in a session of its own, or in the one given. */
export async function aRun(
  store: Store,
  options: { sessionId?: string; goal?: string; agent?: AgentRef; tools?: readonly RegisteredTool[] } = {},
): Promise<Run> {
  const agent = options.agent ?? AGENT;
  await registerAgent(store, { ...agent, tools: options.tools ?? [] });
  const sessionId = options.sessionId ?? (await createSession(store, ALICE.id)).id;
  const submitted = await submitRun(store, {
    sessionId,
    agent,
    goal: options.goal ?? "refund order 4411",
    actor: ALICE,
  });
  if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
  return submitted.run;
}

/** A registered worker with a lease; gives its id. */
export async function aWorker(store: Store, leaseMs = 15_000): Promise<string> {
  const id = newId();
  await registerWorker(store, { id, host: "test", pid: process.pid, agents: [AGENT], slots: 4, leaseMs });
  return id;
}

/** Claims runs; fails where it is not known whether one was. */
export async function claimAll(store: Store, claims: Claim): Promise<readonly LoadedRun[]> {
  return (await claimRuns(store, claims)).map((claimed) => {
    if (isUnloaded(claimed)) throw claimed.error;
    return claimed;
  });
}

/** Claims a run that must be free. */
export async function claim(store: Store, runId: string, workerId: string): Promise<LoadedRun> {
  const [claimed] = await claimAll(store, { runIds: [runId], workerId, progressMs: 60_000, mayTakeSuspect: true });
  if (claimed === undefined) throw new Error(`run ${runId} was not claimed`);
  return claimed;
}

export function aCall(overrides: Partial<Call> & { args?: JsonValue } = {}): Call {
  const { id = newId() } = overrides;
  return {
    id,
    turn: 1,
    ordinal: 0,
    toolCallId: "call_1",
    tool: "send_refund",
    args: { amount: "30.00" },
    argsHash: "hash-1",
    operationId: operationIdOf(id),
    effect: {
      kind: "effect",
      keyValidForMs: 86_400_000,
      lookUpSettlesWithinMs: 60_000,
      equalCallsAreDistinct: false,
      settlement: null,
    },
    verdict: { kind: "allowed" },
    timeoutMs: 10_000,
    retries: 1,
    throttledForMs: 86_400_000,
    service: "payments",
    ...overrides,
  };
}

/** A call as its row has it, without its run. */
export const callRow = (call: Call) => ({
  id: call.id,
  turn: call.turn,
  ordinal: call.ordinal,
  tool_call_id: call.toolCallId,
  tool: call.tool,
  args: canonicalJson(call.args),
  args_hash: call.argsHash,
  operation_id: call.operationId,
  effect: call.effect,
  verdict: call.verdict,
  timeout_ms: call.timeoutMs,
  retries: call.retries,
  service: call.service,
  throttled_for_ms: call.throttledForMs,
});

export function aReply(calls: readonly Call[], turn = 1): StepBody {
  return {
    kind: "model_reply",
    turn,
    message: { role: "assistant", content: [] },
    text: "",
    callIds: calls.map(({ id }) => id),
    outcome: null,
    usage: { inputTokens: 10, outputTokens: 5 },
  };
}

/** What a commit of a test carries: a start is made under the policy that its run was loaded with. */
export type Carried = Partial<Omit<StepCommit, "start">> & { readonly start?: PlannedStart | null };
export type PlannedStart = Omit<EffectStart, "policyRevision"> & { readonly policyRevision?: number };

/** A commit of the claimed run as it was loaded; `overrides` say what it carries. */
export function aCommit(claimed: LoadedRun, { start = null, ...overrides }: Carried = {}): StepCommit {
  const owner = claimed.run.state.owner;
  if (owner === null) throw new Error("the run has no owner");
  return {
    runId: claimed.run.id,
    workerId: owner,
    epoch: claimed.run.epoch,
    stepSeq: claimed.run.stepSeq,
    steps: [],
    start: start === null ? null : { policyRevision: claimed.policyRevision, ...start },
    checkpoint: EMPTY_CHECKPOINT,
    currentStep: "test",
    progressMs: 60_000,
    progress: true,
    ...overrides,
  };
}

/** The start of an effect's call, under the approval that it needs, if any. */
export function aStart(call: Call, attempt = 1, approvalId: string | null = null): PlannedStart {
  return {
    body: { kind: "intent", callId: call.id, attempt },
    attemptId: newId(),
    deadlineMs: call.timeoutMs,
    externalRef: call.operationId,
    argsHash: call.argsHash,
    approvalId,
    supersedes: null,
  };
}
