import type { StepBody } from "@holdpoint/core";
import { openPublisher, type Publisher } from "@holdpoint/queue";
import {
  createSession,
  decideApproval,
  decideAsOperator,
  findOverdue,
  findRetriesDue,
  findViolations,
  grantRoles,
  type LoadedRun,
  loadRun,
  type OperatorDecision,
  openStore,
  type Run,
  type Store,
  submitRun,
  transition,
} from "@holdpoint/store";
import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import { pino } from "pino";
import { expect } from "vitest";
import { type Agent, createWorker, type Runnable, type Worker } from "../src/index.ts";

export const ALICE = { kind: "requester", id: "alice" } as const;
export const MANAGER = { kind: "approver", id: "mona" } as const;
export const MAX = { kind: "approver", id: "max" } as const;
export const OPERATOR = { kind: "operator", id: "otto" } as const;

/** A database with its queue, and workers on it. */
export interface Fleet extends AsyncDisposable {
  readonly url: string;
  readonly store: Store;
  readonly publisher: Publisher;
  /** Starts a worker; it is drained at the end unless it was before. */
  start(agent: Runnable, options?: Partial<Parameters<typeof createWorker>[0]>): Promise<Worker>;
  /** Submits a run and wakes a worker for it. */
  submit(agent: Agent, goal?: string): Promise<Run>;
  /** Submits a run without waking anybody. */
  submitQuietly(agent: Agent): Promise<Run>;
  /** Wakes a worker for a run. */
  wake(run: Run): Promise<void>;
  /** Waits until the run has one of these statuses. */
  untilStatus(runId: string, ...statuses: readonly string[]): Promise<Run>;
  load(runId: string): Promise<LoadedRun>;
  /** Decides the approvals of a run's hold, in the order of their calls, and wakes a worker. */
  decide(runId: string, ...decisions: readonly ("approve" | "reject")[]): Promise<void>;
  /** An operator's word; the run must be able to go on with it. */
  order(runId: string, decision: Pick<OperatorDecision, "choice"> & Partial<OperatorDecision>): Promise<Run>;
  /** What a sweep does: moves the runs whose wait is over, and wakes workers for those that may go on. */
  sweep(): Promise<void>;
  /** The rows of a table that belong to a run. */
  rows(table: string, runId: string, order?: string): Promise<readonly Record<string, unknown>[]>;
}

const DEADLINE_MS = 25_000;

export async function openFleet(): Promise<Fleet> {
  const database = await createTestDatabase();
  const store = openStore({ url: database.url, maxConnections: 6 });
  const grants = [MANAGER, MAX].map(({ id: user }) => ({ user, role: "manager" }));
  await grantRoles(store, { grants, by: "test" });
  const queue = { kind: "postgres", url: database.url } as const;
  const publisher = openPublisher(queue, { limitMs: 10_000 });
  const workers: Worker[] = [];
  const fleet: Fleet = {
    url: database.url,
    store,
    publisher,
    wake: async (run) => {
      await publisher.publish([{ agent: run.agent, runId: run.id, version: run.version }]);
    },
    start: async (agent, options = {}) => {
      const log = pino({ level: process.env.TEST_LOG ?? "silent" });
      const usual = { store, queue, agents: [agent], slots: 4, leaseMs: 15_000, renewMs: 5_000, log };
      const worker = await createWorker({ ...usual, ...options });
      workers.push(worker);
      return worker;
    },
    submit: async (agent, goal = "do it") => {
      const run = await submit(store, agent, goal);
      await fleet.wake(run);
      return run;
    },
    submitQuietly: (agent) => submit(store, agent, "do it"),
    untilStatus: (runId, ...statuses) => untilStatus(store, runId, statuses),
    load: async (runId) => {
      const loaded = await loadRun(store, runId);
      if (loaded === null) throw new Error("the run is gone");
      return loaded;
    },
    decide: (runId, ...decisions) => decide(fleet, runId, decisions),
    order: async (runId, decision) => {
      const decided = await decideAsOperator(store, {
        runId,
        actor: OPERATOR,
        reason: "test",
        attemptIds: [],
        ...decision,
      });
      if (decided.result !== "accepted") throw new Error(`not accepted: ${JSON.stringify(decided)}`);
      if (decided.run.state.status === "queued") await fleet.wake(decided.run);
      return decided.run;
    },
    sweep: () => sweep(fleet),
    rows: async (table, runId, order = "1") => {
      const { rows } = await store.pool.query(`select * from holdpoint.${table} where run_id = $1 order by ${order}`, [
        runId,
      ]);
      return rows;
    },
    [Symbol.asyncDispose]: async () => {
      for (const worker of workers) await worker.drain(1_000);
      const violations = await findViolations(store);
      await publisher[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
      expect(violations).toEqual([]);
    },
  };
  return fleet;
}

const SWEEPER = { kind: "sweeper", id: "test" } as const;

async function sweep({ store, wake }: Fleet): Promise<void> {
  const overdue = (await findOverdue(store, 100)).filter(({ approvals }) => approvals.length === 0);
  const due = await findRetriesDue(store, 100);
  const moves = [
    ...overdue.map(({ run }) => ({
      run,
      events: [{ type: "DeadlinePassed", remaining: null }] as const,
      actor: SWEEPER,
    })),
    ...due.map(({ run }) => ({ run, events: [{ type: "RetryDue" }] as const, actor: SWEEPER })),
  ];
  for (const moved of await transition(store, moves, { skipLocked: true })) {
    if (moved instanceof Error) throw moved;
    if (moved.result === "accepted" && moved.run.state.status === "queued") await wake(moved.run);
  }
}

async function submit(store: Store, agent: Agent, goal: string): Promise<Run> {
  const session = await createSession(store, ALICE.id);
  const submitted = await submitRun(store, { sessionId: session.id, agent, goal, actor: ALICE });
  if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
  return submitted.run;
}

async function untilStatus(store: Store, runId: string, statuses: readonly string[]): Promise<Run> {
  const what = `run to be ${statuses.join(" or ")}`;
  let last: LoadedRun | null = null;
  const isThere = async () => {
    last = await loadRun(store, runId);
    return last !== null && statuses.includes(last.run.state.status) ? last.run : null;
  };
  return waitFor(isThere, { deadlineMs: DEADLINE_MS, what }).catch((cause) => {
    throw new Error(`it is ${last?.run.state.status} for ${last?.run.state.waitingFor?.reason}`, { cause });
  });
}

async function decide(fleet: Fleet, runId: string, decisions: readonly ("approve" | "reject")[]): Promise<void> {
  const { approvals, calls } = await fleet.load(runId);
  const pending = calls.flatMap(({ id }) =>
    approvals.filter(({ callId, state }) => callId === id && state === "pending"),
  );
  expect(pending).toHaveLength(decisions.length);
  for (const [index, { id: approvalId, argsHash }] of pending.entries()) {
    const decision = decisions[index] ?? "reject";
    const decided = { approvalId, decision, argsHash, note: "as told", actor: MANAGER };
    expect((await decideApproval(fleet.store, decided)).result).toBe("accepted");
  }
  await fleet.wake((await fleet.load(runId)).run);
}

/** The kinds of a run's steps, in order; results with how the call ended. */
export function story({ steps, calls }: LoadedRun): readonly string[] {
  const toolOf = (callId: string) => calls.find(({ id }) => id === callId)?.tool ?? "?";
  return steps.map(({ body }) => tell(body, toolOf));
}

function tell(body: StepBody, toolOf: (callId: string) => string): string {
  switch (body.kind) {
    case "tool_result":
      return `${toolOf(body.callId)} ${body.result}`;
    case "intent":
    case "did_not_happen":
    case "call_failed":
      return `${body.kind} ${toolOf(body.callId)} ${body.attempt}`;
    case "model_failed":
      return `model_failed ${body.code}`;
    case "operator":
      return `operator ${body.choice}`;
    default:
      return body.kind;
  }
}
