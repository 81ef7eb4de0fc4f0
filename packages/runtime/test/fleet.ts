import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import { createSession, loadRun, openStore, type Run, type Store, submitRun } from "@holdpoint/store";
import { openPublisher, type Publisher } from "@holdpoint/queue";
import { pino } from "pino";
import { type Agent, createWorker, type Worker } from "../src/index.ts";

export const ALICE = { kind: "requester", id: "alice" } as const;
export const MANAGER = { kind: "approver", id: "mona" } as const;

/** A database with its queue, and workers on it. */
export interface Fleet extends AsyncDisposable {
  readonly url: string;
  readonly store: Store;
  readonly publisher: Publisher;
  /** Starts a worker; it is drained at the end unless it was before. */
  start(agent: Agent, options?: Partial<Parameters<typeof createWorker>[0]>): Promise<Worker>;
  /** Submits a run and wakes a worker for it. */
  submit(agent: Agent, goal?: string): Promise<Run>;
  /** Wakes a worker for a run. */
  wake(run: Run): Promise<void>;
  /** Waits until the run has one of these statuses. */
  untilStatus(runId: string, ...statuses: readonly string[]): Promise<Run>;
}

const DEADLINE_MS = 15_000;

export async function openFleet(): Promise<Fleet> {
  const database = await createTestDatabase();
  const store = openStore({ url: database.url, maxConnections: 6 });
  const queue = { kind: "postgres", url: database.url } as const;
  const publisher = openPublisher(queue, { limitMs: 10_000 });
  const workers: Worker[] = [];
  const wake = async (run: Run): Promise<void> => {
    await publisher.publish([{ agent: run.agent, runId: run.id, version: run.version }]);
  };
  return {
    url: database.url,
    store,
    publisher,
    wake,
    start: async (agent, options = {}) => {
      const log = pino({ level: process.env.TEST_LOG ?? "silent" });
      const worker = await createWorker({ store, queue, agents: [agent], slots: 4, leaseMs: 15_000, renewMs: 5_000, log, ...options });
      workers.push(worker);
      return worker;
    },
    submit: async (agent, goal = "do it") => {
      const session = await createSession(store, ALICE.id);
      const submitted = await submitRun(store, { sessionId: session.id, agent, goal, actor: ALICE });
      if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
      await wake(submitted.run);
      return submitted.run;
    },
    untilStatus: async (runId, ...statuses) => {
      let run: Run | null = null;
      const what = `run to be ${statuses.join(" or ")}`;
      await waitFor(
        async () => {
          run = (await loadRun(store, runId))?.run ?? null;
          return run !== null && statuses.includes(run.state.status);
        },
        { deadlineMs: DEADLINE_MS, what },
      );
      if (run === null) throw new Error("the run is gone");
      return run;
    },
    [Symbol.asyncDispose]: async () => {
      for (const worker of workers) await worker.drain(1_000);
      await publisher[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

