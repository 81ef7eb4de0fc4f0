import { afterEach, beforeEach, expect, test } from "vitest";
import { drainWorker } from "../../packages/store/src/index.ts";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { type Fleet, isAlive, openFleet } from "./processes.ts";

let fleet: Fleet;

beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

async function theWorker(): Promise<{ readonly id: string; readonly pid: number }> {
  const { rows } = await fleet.store.pool.query<{ id: string; pid: number }>(
    "select id, pid from holdpoint.workers where gone_at is null",
  );
  const [worker] = rows;
  if (worker === undefined) throw new Error("no worker lives");
  return worker;
}

test("an operator's drain: the process gives its run back and ends, and another goes on with it in its place", async () => {
  const worker = await fleet.worker();
  fleet.outside.hold("n");
  const [id = ""] = await fleet.submit("look n");
  await fleet.outside.untilAsked("n");
  const first = await theWorker();
  expect(await drainWorker(fleet.store, { workerId: first.id, by: "olga", stayDown: false })).toEqual({
    result: "asked",
  });
  await waitFor(() => !isAlive(first.pid), { deadlineMs: 30_000, what: "the drained process to end" });
  const next = await waitFor(async () => (await theWorker().catch(() => null)) ?? null, {
    deadlineMs: 30_000,
    what: "another in its place",
  });
  expect(next.id).not.toBe(first.id);
  fleet.outside.release("n");
  await fleet.untilStatus([id], "completed");
  // Given back, not lost: no attempt and no takeover is counted.
  const events = (await fleet.history(id)).map(({ event }) => event);
  expect(events.slice(0, 4)).toEqual(["Submitted", "Claimed", "Released", "Claimed"]);
  worker.process.kill("SIGTERM");
  expect(await worker.ended).toBe(0);
});

test("one that is to stay down is not started again; once all are down, their supervisor ends with 0", async () => {
  const worker = await fleet.worker();
  const first = await theWorker();
  await drainWorker(fleet.store, { workerId: first.id, by: "olga", stayDown: true });
  expect(await worker.ended).toBe(0);
  expect(isAlive(first.pid)).toBe(false);
  expect(await fleet.workers()).toEqual([]);
  const { rows } = await fleet.store.pool.query("select gone_reason from holdpoint.workers");
  expect(rows).toEqual([{ gone_reason: "retired" }]);
});
