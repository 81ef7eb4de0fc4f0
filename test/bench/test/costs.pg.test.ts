// What a step costs when runs work at once, by the server's own counters: no time is measured. The wake-ups wait on Postgres,
// in a database of their own, so that this needs no Redis.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Reading, readCounters, subtract } from "../counters.ts";
import { product } from "../product.ts";
import { openStage, type Stage } from "../stage.ts";
import { type Cast, openCast, playTrial, untilAllEnded, warmUp } from "../trial.ts";
import { stepsOf } from "../work.ts";

const WORK = { turns: 1, calls: 10 };
const RUNS = 100;
const SLOTS = 20;
const STEPS = RUNS * stepsOf(WORK);

/** Above what is measured, since fewer runs share less; far below a transaction for each step, and each claim and end. */
const MOST = { transactions: 0.35, roundTrips: 0.35, walBytes: 1_800 };

/** Servers and workers are started beside other tests. */
const LIMIT_MS = 120_000;

let stage: Stage;

beforeAll(async () => {
  stage = await openStage({ rounds: 1, quick: true, profileDir: null, queues: ["postgres"] });
}, LIMIT_MS);

afterAll(() => stage[Symbol.asyncDispose]());

describe("a step of twenty runs at once", () => {
  test("shares its transaction, its round trip and its part of the log with others", {
    timeout: LIMIT_MS,
  }, async () => {
    await using cast = await openCast(stage, product, { queue: "postgres", work: WORK, slots: SLOTS });
    const { arena, client, workers } = cast;
    await warmUp(stage, product, { cast, runs: RUNS });
    const submitted = await client.submit(RUNS);
    const before = await read(cast);
    await submitted.announce();
    const polls = await untilAllEnded(arena, product, workers);
    const after = await read(cast);
    const used = subtract(after, before, polls);
    expect(used.transactions / STEPS).toBeLessThanOrEqual(MOST.transactions);
    expect(used.statements / STEPS).toBeLessThanOrEqual(MOST.roundTrips);
    expect((after.logged - before.logged) / STEPS).toBeLessThanOrEqual(MOST.walBytes);
    // Less would mean that the counters were not read: a statement holds no more than a hundred moves.
    expect(used.statements).toBeGreaterThanOrEqual(STEPS / 100);
  });
});

test("a trial of no runs has used nothing: what the benchmark reads is in none of its figures", {
  timeout: LIMIT_MS,
}, async () => {
  const { used } = await playTrial(stage, product, {
    queue: "postgres",
    work: WORK,
    slots: 1,
    runs: 0,
    warmUpRuns: 50,
  });
  // A lease may be renewed meanwhile, and be counted as the one before a reading and as the other after it.
  for (const count of [used.transactions, used.statements]) expect(Math.abs(count)).toBeLessThanOrEqual(1);
  // A single page in the log, for a hint on it, would be more.
  expect(used.walBytes).toBeLessThan(8_192);
});

/** The counters, with the bytes of log that the statements of the arena's database have written: the queue has its own. */
async function read({ arena, workers }: Cast): Promise<Reading & { readonly logged: number }> {
  const reading = await readCounters(stage.servers, arena, workers);
  const { rows } = await stage.servers.admin.query<{ logged: number }>(
    `select sum(s.wal_bytes)::float8 as logged from pg_stat_statements(false) s join pg_database d on d.oid = s.dbid
     where d.datname = $1`,
    [arena.database],
  );
  return { ...reading, logged: rows[0]?.logged ?? Number.NaN };
}
