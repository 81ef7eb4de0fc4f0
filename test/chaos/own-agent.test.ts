// How users hold their own agents by fault points: a forked worker is killed at a named point, another carries on.

import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createWorker } from "@holdpoint/runtime";
import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import { openPublisher } from "../../packages/queue/src/index.ts";
import {
  createSession,
  findViolations,
  loadRun,
  newId,
  openStore,
  registerAgent,
  type Store,
  submitRun,
} from "../../packages/store/src/index.ts";
import { superviseEnd } from "./caretakers.ts";
import { createParcelAgent } from "./parcel-agent.ts";
import { handInAt, openParcels } from "./parcels.ts";

const PROGRAM = resolve(import.meta.dirname, "parcel-worker.ts");
const ALICE = { kind: "requester", id: "alice" } as const;

async function submit(store: Store) {
  const agent = { name: "parcels", version: "1" };
  await registerAgent(store, { ...agent, tools: [] });
  const session = await createSession(store, ALICE.id);
  const submitted = await submitRun(store, { sessionId: session.id, agent, goal: "a parcel to Mara", actor: ALICE });
  if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
  return submitted.run;
}

test.each([
  "model:after",
  "tool:send_parcel:before",
  "tool:send_parcel:after",
  "statement:commit_steps:answered",
  "statement:transition:answered",
])("a worker that is killed at %s leaves one parcel, sent by it or by the next", async (point) => {
  await using stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url, maxConnections: 4 }));
  const parcels = await openParcels(store);
  const queue = { kind: "postgres", url } as const;
  const publisher = stack.use(openPublisher(queue, { limitMs: 10_000 }));
  const { id: runId, version, agent } = await submit(store);
  await publisher.publish([{ agent, runId, version }]);

  const workerId = newId();
  const doomed = fork(PROGRAM, [url, workerId, point], { execArgv: [] });
  expect(await once(doomed, "exit")).toEqual([null, "SIGKILL"]);
  await superviseEnd(store, workerId);

  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const agents = [createParcelAgent(handInAt(store.pool))];
  const next = await createWorker({ store, queue, agents, slots: 1, leaseMs: 15_000, renewMs: 5_000, log });
  stack.defer(() => next.drain(1_000));
  const run = (await loadRun(store, runId))?.run;
  await publisher.publish([{ agent, runId, version: run?.version ?? version }]);
  const isEnded = async () => (await loadRun(store, runId))?.run.state.status === "completed";
  await waitFor(isEnded, { deadlineMs: 60_000, what: "the run to end" });
  expect(await parcels.list()).toEqual([{ recipient: "Mara" }]);
  expect(await findViolations(store)).toEqual([]);
});
