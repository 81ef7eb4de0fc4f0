import type { AddressInfo } from "node:net";
import { type Client, createClient, ProblemError } from "@holdpoint/client";
import { EMPTY_CHECKPOINT, type RunEvent, type StepBody } from "@holdpoint/core";
import { openPublisher, type Publisher } from "@holdpoint/queue";
import {
  claimRuns,
  commitSteps,
  isUnloaded,
  newId,
  newOperationId,
  openStore,
  registerAgent,
  registerWorker,
  type Store,
  showId,
  transitionOne,
  type Writes,
} from "@holdpoint/store";
import { findRun, readId } from "@holdpoint/store/read";
import { createTestDatabase } from "@holdpoint/testkit";
import { pino } from "pino";
import { buildApi } from "../src/index.ts";

export const AGENT = { name: "refunds", version: "1" };
export const HASH = "hash-1";

const TOKENS = [
  { token: "alice-token", user: "alice", roles: ["requester"] },
  { token: "alice-manager", user: "alice", roles: ["requester", "manager"] },
  { token: "bob-token", user: "bob", roles: ["requester"] },
  { token: "mona-token", user: "mona", roles: ["manager"] },
  { token: "max-token", user: "max", roles: ["manager"] },
  { token: "olga-token", user: "olga", roles: ["operator"] },
];

/** An api that listens, on a database and a queue of its own. */
export interface TestApi extends AsyncDisposable {
  readonly baseUrl: string;
  readonly store: Store;
  readonly logged: readonly string[];
  /** The client of whoever has this token. */
  as(token: string): Client;
}

export async function openTestApi(options: { publisher?: Publisher } = {}): Promise<TestApi> {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url: database.url }));
  const publisher = options.publisher ?? openPublisher({ kind: "postgres", url: database.url });
  stack.defer(() => publisher[Symbol.asyncDispose]());
  const logged: string[] = [];
  const log = pino({ level: "info" }, { write: (line) => logged.push(line) });
  const app = await buildApi({ store, publisher, tokens: TOKENS, log });
  await app.listen({ host: "127.0.0.1", port: 0 });
  stack.defer(() => app.close());
  await registerAgent(store, { ...AGENT, tools: [] });
  // A server that listens on TCP has an address of this form.
  const baseUrl = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  return {
    baseUrl,
    store,
    logged,
    as: (token) => createClient({ baseUrl, token, timeoutMs: 10_000 }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A run of alice's that is queued. */
export async function aRun(api: TestApi, goal = "refund order 4411") {
  const alice = api.as("alice-token");
  const session = await alice.createSession();
  return alice.submitRun({ sessionId: session.id, agent: AGENT, goal });
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
  return { workerId, epoch: claimed.run.epoch };
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
export async function callForRefund(store: Store, runId: string, { workerId, epoch }: Claim): Promise<string> {
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
        tool: "send_refund",
        args: { amount: "30.00" },
        argsHash: HASH,
        operationId: newOperationId(),
        effect: { kind: "effect", keyValidForMs: 1_000, lookUpSettlesWithinMs: null, equalCallsAreDistinct: false },
        verdict: { kind: "allowed" },
        timeoutMs: 10_000,
        retries: 1,
      },
    ],
  });
  return callId;
}

/** The owner starts the call; gives the attempt's stored id. */
export async function startRefund(store: Store, runId: string, { callId, ...owner }: Claim & { callId: string }) {
  const attemptId = newId();
  await commit(store, runId, {
    ...owner,
    stepSeq: 1,
    steps: [],
    start: {
      body: { kind: "intent", callId, attempt: 1 },
      attemptId,
      deadlineMs: 10_000,
      externalRef: "op_1",
      approval: null,
      supersedes: null,
    },
  });
  return attemptId;
}

async function commit(
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

/** A run of alice's that waits for a manager; gives the request's shown id. */
export async function aWaitingRun(api: TestApi, options: { deadlineMs?: number; users?: string[] } = {}) {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const callId = await callForRefund(api.store, run.id, owner);
  const approvalId = newId();
  const deadlineMs = options.deadlineMs ?? 60_000;
  await move(api.store, {
    runId: run.id,
    workerId: owner.workerId,
    event: {
      type: "Held",
      hold: {
        kind: "approval",
        waitingFor: { kind: "approvers", principal: "role:manager", subject: callId, reason: "over_limit" },
        deadline: { inMs: deadlineMs },
        onDeadline: "reject",
      },
    },
    writes: {
      requests: [
        {
          id: approvalId,
          callId,
          tool: "send_refund",
          args: '{"amount":"30.00"}',
          argsHash: HASH,
          rule: "over_limit",
          roles: ["manager"],
          users: options.users ?? [],
          excluded: ["alice"],
          deadlineMs,
          onDeadline: "reject",
          validForMs: 60_000,
        },
      ],
    },
  });
  return { runId: run.id, approvalId: showId("approval", approvalId) };
}

/** The problem that a call must have been answered with. */
export async function problemOf(call: Promise<unknown>): Promise<ProblemError> {
  const error = await call.then(
    () => new Error("the call was answered with success"),
    (reason: unknown) => reason,
  );
  if (error instanceof ProblemError) return error;
  throw error;
}
