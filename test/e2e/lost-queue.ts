import { expect } from "vitest";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import type { Fleet } from "./processes.ts";

const RUNS = 200;

/** Empties the queue in the middle of 200 runs; each of them ends, and did its work once. */
export async function loseTheQueue(fleet: Fleet, empty: () => Promise<void>): Promise<void> {
  await fleet.sweeper();
  const ids = await fleet.submit(...Array.from({ length: RUNS }, (_, n) => `look q${n}`));
  await fleet.worker({ processes: 2 });
  const ended = async () => {
    const { rows } = await fleet.store.pool.query<{ n: number }>(
      "select count(*)::int as n from holdpoint.runs where ended_at is not null",
    );
    return rows[0]?.n ?? 0;
  };
  await waitFor(async () => (await ended()) >= RUNS / 10, { deadlineMs: 40_000, what: "the first runs to end" });
  await empty();
  const before = await ended();
  expect(before).toBeLessThan(RUNS);
  await fleet.untilStatus(ids, "completed", 60_000);
  expect(fleet.outside.looks.toSorted()).toEqual(Array.from({ length: RUNS }, (_, n) => `q${n}`).toSorted());
}
