import {
  type ApprovalRule,
  canonicalJson,
  EMPTY_CHECKPOINT,
  holdOf,
  type JsonValue,
  operatorHold,
  type PendingRequest,
  type RunEvent,
  type StepBody,
} from "@holdpoint/core";
import {
  type ApprovalRequest,
  claimRuns,
  commitSteps,
  hashArgs,
  isUnloaded,
  newId,
  operationIdOf,
  registerWorker,
  type Store,
  showId,
  transitionOne,
  type Writes,
} from "@holdpoint/store";
import { findRun, readId } from "@holdpoint/store/read";
import { AGENT, ARGS, HASH, SEND_REFUND, TERMS, type TestApi, TOOL } from "./api-fixture.ts";

/** A run that is queued, of alice's unless another token is given. */
export async function aRun(api: TestApi, goal = "refund order 4411", token = "alice-token") {
  const requester = api.as(token);
  const session = await requester.createSession();
  return requester.submitRun({ sessionId: session.id, agent: AGENT, goal });
}

/** The stored form of a run's shown id. */
export function stored(runId: string): string {
  const id = readId("run", runId);
  if (id === null) throw new Error(`no run's id: ${runId}`);
  return id;
}

/** Claims a run for a worker of its own, as the runtime does. */
export async function claim(store: Store, runId: string) {
  const workerId = newId();
  await registerWorker(store, {
    id: workerId,
    host: "test",
    pid: process.pid,
    agents: [AGENT],
    slots: 1,
    leaseMs: 60_000,
  });
  const [claimed] = await claimRuns(store, {
    runIds: [stored(runId)],
    workerId,
    progressMs: 60_000,
    mayTakeSuspect: true,
  });
  if (claimed === undefined || isUnloaded(claimed)) throw new Error(`${runId} was not claimed`);
  return {
    workerId,
    epoch: claimed.run.epoch,
    policyRevision: claimed.policyRevision,
    requester: claimed.run.requester,
  };
}

export type Claim = Awaited<ReturnType<typeof claim>>;

/** What the owner does to its run, by an event. */
export async function move(
  store: Store,
  { runId, workerId, event, writes = {} }: { runId: string; workerId: string; event: RunEvent; writes?: Writes },
) {
  const view = await findRun(store, stored(runId));
  if (view === null) throw new Error(`there is no ${runId}`);
  const moved = await transitionOne(store, {
    run: view.run,
    events: [event],
    actor: { kind: "worker", id: workerId },
    writes,
  });
  if (moved.result !== "accepted") throw new Error(`${event.type} of ${runId} was not accepted: ${moved.result}`);
}

/** The owner has asked its requester something. */
export async function ask(store: Store, runId: string, { workerId }: Claim): Promise<void> {
  const event: RunEvent = {
    type: "Held",
    hold: {
      kind: "input",
      waitingFor: { kind: "requester", principal: "alice", subject: null, reason: "question" },
      deadline: { inMs: 60_000 },
      onDeadline: "no_answer",
    },
  };
  await move(store, { runId, workerId, event });
}

/** The owner ends its run with success. */
export async function end(store: Store, runId: string, { workerId }: Claim): Promise<void> {
  await move(store, {
    runId,
    workerId,
    event: { type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null },
  });
}

/** The model asks for a refund; gives the call's stored id. */
export async function callForRefund(
  store: Store,
  runId: string,
  {
    workerId,
    epoch,
    terms = null,
    args = ARGS,
  }: Pick<Claim, "workerId" | "epoch"> & { terms?: ApprovalRule | null; args?: JsonValue },
): Promise<string> {
  const callId = newId();
  const reply: StepBody = {
    kind: "model_reply",
    turn: 1,
    message: { role: "assistant", content: "SECRET-PAYLOAD" },
    text: "SECRET-PAYLOAD",
    callIds: [callId],
    outcome: null,
    usage: { inputTokens: 10, outputTokens: 5 },
  };
  await commit(store, runId, {
    workerId,
    epoch,
    stepSeq: 0,
    steps: [reply],
    start: null,
    calls: [
      {
        id: callId,
        turn: 1,
        ordinal: 0,
        toolCallId: "call_1",
        tool: TOOL,
        args,
        argsHash: hashArgs(TOOL, args),
        operationId: operationIdOf(callId),
        effect: {
          kind: "effect",
          keyValidForMs: 1_000,
          lookUpSettlesWithinMs: null,
          equalCallsAreDistinct: false,
          settlement: null,
        },
        verdict: terms === null ? { kind: "allowed" } : { kind: "needs_approval", approval: terms },
        timeoutMs: 10_000,
        retries: 1,
        throttledForMs: 60_000,
        service: "bank",
      },
    ],
  });
  return callId;
}

/** The owner waits for an operator, for this reason. */
export async function waitForOperator(
  store: Store,
  runId: string,
  { workerId, reason, subject }: { workerId: string; reason: string; subject: string | null },
) {
  await move(store, { runId, workerId, event: { type: "Held", hold: operatorHold(reason, subject) } });
}

/** The owner starts the call; gives the attempt's stored id. */
export async function startRefund(
  store: Store,
  runId: string,
  { callId, workerId, epoch, policyRevision }: Omit<Claim, "requester"> & { callId: string },
) {
  const attemptId = newId();
  await commit(store, runId, {
    workerId,
    epoch,
    stepSeq: 1,
    steps: [],
    start: {
      body: { kind: "intent", callId, attempt: 1 },
      attemptId,
      deadlineMs: 10_000,
      externalRef: "op_1",
      argsHash: HASH,
      approvalId: null,
      policyRevision,
      supersedes: null,
    },
  });
  return attemptId;
}

/** The owner stores progress. */
export async function commit(
  store: Store,
  runId: string,
  part: Omit<
    Parameters<typeof commitSteps>[1][number],
    "runId" | "checkpoint" | "currentStep" | "progressMs" | "progress"
  >,
) {
  const [result] = await commitSteps(store, [
    {
      ...part,
      runId: stored(runId),
      checkpoint: EMPTY_CHECKPOINT,
      currentStep: "send_refund",
      progressMs: 60_000,
      progress: true,
    },
  ]);
  if (result instanceof Error || result?.result !== "taken") throw new Error(`not taken: ${JSON.stringify(result)}`);
}

/** What a test asks for in another way than usual. */
export interface Wanted {
  readonly terms?: Partial<ApprovalRule>;
  readonly args?: JsonValue;
  readonly request?: Partial<ApprovalRequest["request"]>;
  /** Whose run it is. */
  readonly token?: string;
}

/** A run that waits for a manager, of alice's unless another token is given; gives the request's shown id. */
export async function aWaitingRun(api: TestApi, wanted: Wanted = {}) {
  const run = await aRun(api, undefined, wanted.token);
  return { runId: run.id, ...(await waitForApproval(api, run.id, wanted)) };
}

/** The run's owner asks for an approval and gives the run back. */
export async function waitForApproval(api: TestApi, runId: string, { terms, args = ARGS, request }: Wanted = {}) {
  const owner = await claim(api.store, runId);
  const rule: ApprovalRule = { rule: "over_limit", ...TERMS, ...terms };
  const callId = await callForRefund(api.store, runId, { ...owner, terms: rule, args });
  const id = newId();
  const asked: PendingRequest = { id, callId, terms: rule, level: 0, extended: false, deadlineMs: 0 };
  await move(api.store, {
    runId,
    workerId: owner.workerId,
    event: { type: "Held", hold: { ...holdOf([asked]), deadline: { inMs: rule.deadlineMs } } },
    writes: {
      requests: [
        {
          id,
          callId,
          tool: TOOL,
          args: canonicalJson(args),
          argsHash: hashArgs(TOOL, args),
          terms: rule,
          request: {
            redactedArgs: { amount: "30.00", order: "4411", iban: "[redacted]" },
            modelReason: "The parcel never came",
            amount: { minor: "3000", currency: "EUR" },
            risk: { level: "high", reversible: false },
            evidence: [{ tool: "find_order", result: "succeeded", excerpt: "paid 30.00" }],
            editSchema: SEND_REFUND.inputSchema,
            ...request,
          },
          excluded: rule.fourEyes ? [owner.requester] : [],
          editedBy: null,
          approval: null,
        },
      ],
    },
  });
  return { callId, approvalId: showId("approval", id), storedId: id };
}
