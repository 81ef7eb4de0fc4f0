// What a statement reads of tables that are large. A worker's plans are made once for each connection, at first when its tables are empty and the server has not looked at
// them yet. Its own database: nobody else reads there.

import { createTestDatabase } from "@holdpoint/testkit";
import { expect, test } from "vitest";
import { openStore, type Store } from "../src/index.ts";
import { findApproval, findApprovalHistory } from "../src/read/index.ts";
import { grantAll } from "./a-run.ts";
import { anAskingRun, aResult, aSpendingRun, moved, ownerOf, took } from "./a-status.ts";

/** A run from its submission to its end: claims, a reply with a call, a hold, a decision, an effect, and what is said. */
async function playOne(store: Store): Promise<string> {
  const { call, start, claimed } = await aSpendingRun(store);
  const settles = [{ attemptId: start.attemptId, outcome: "succeeded", settledBy: "worker" }] as const;
  const { run } = await took(store, claimed, { steps: [aResult(call)], settles });
  await moved(store, {
    run,
    actor: ownerOf(claimed),
    events: [{ type: "Ended", status: "completed", outcome: { kind: "succeeded" }, reason: null }],
    writes: { messages: [{ role: "assistant", author: "agent:refunds", text: "It is paid." }] },
  });
  return run.id;
}

const TABLES = ["runs", "sessions", "messages", "transitions", "steps", "calls", "attempts", "approvals"];

/** Many runs like this one, each in a session of its own. */
async function copy({ pool }: Store, runId: string, count: number): Promise<void> {
  await pool.query(
    `with made as (
       insert into holdpoint.sessions (tenant_id, id, requester, message_seq, created_at)
       select s.tenant_id, gen_random_uuid(), s.requester, s.message_seq, s.created_at
       from holdpoint.runs r join holdpoint.sessions s on s.id = r.session_id, generate_series(1, $2::int)
       where r.id = $1 returning id
     )
     insert into holdpoint.runs
     select (jsonb_populate_record(r, jsonb_build_object('id', m.id, 'session_id', m.id, 'line', m.id))).*
     from holdpoint.runs r, made m where r.id = $1`,
    [runId, count],
  );
}

/** How many rows of each table have been read, by whatever way. */
async function rowsRead({ pool }: Store): Promise<number> {
  await pool.query("select pg_stat_force_next_flush()");
  const { rows } = await pool.query<{ read: number }>(
    `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_user_tables
     where schemaname = 'holdpoint' and relname ~ $1`,
    [`^(${TABLES.join("|")})(_rest)?$`],
  );
  return rows[0]?.read ?? 0;
}

const COPIES = 3_000;

test("whoever opens an approval reads the runs of its line, not the steps of all", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url, maxConnections: 1 });
  const { request } = await anAskingRun(store);
  await store.pool.query(
    `insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at, calls)
     select $1, gen_random_uuid(), 1, 1, 'model_reply', jsonb_build_object('turn', 1, 'callIds', jsonb_build_array(gen_random_uuid())),
       holdpoint.clock(), '[["call_0", "look", "{}"]]' from generate_series(1, $2::int)`,
    [store.tenantId, COPIES],
  );
  await store.pool.query("analyze holdpoint.steps, holdpoint.calls, holdpoint.runs");
  const view = await findApproval(store, request.id);
  if (view === null) throw new Error("there is no such approval");
  const before = await rowsRead(store);
  await findApprovalHistory(store, view);
  expect((await rowsRead(store)) - before).toBeLessThan(COPIES / 2);
});

test("a plan that was made when the tables were empty does not read all of what they have become", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url, maxConnections: 1, plansOnce: true });
  await grantAll(store);
  for (const table of ["runs", "sessions"]) {
    // The server does not look at them while this goes on, either.
    await store.pool.query(`alter table holdpoint.${table} set (autovacuum_enabled = off)`);
  }
  const runId = await playOne(store);
  await copy(store, runId, COPIES);
  const before = await rowsRead(store);
  await playOne(store);
  expect((await rowsRead(store)) - before).toBeLessThan(COPIES / 2);
});
