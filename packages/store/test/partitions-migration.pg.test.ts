import { readdir, readFile } from "node:fs/promises";
import { createTestDatabase } from "@holdpoint/testkit";
import pg from "pg";
import { expect, test } from "vitest";
import { newId } from "../src/index.ts";

const MIGRATIONS = new URL("../migrations/", import.meta.url);
const TENANT = "00000000-0000-7000-8000-000000000000";

test("histories that were in one partition each stay where they lie, and what has an id of later goes to the default one", async () => {
  await using database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query("drop schema holdpoint cascade");
    const names = (await readdir(MIGRATIONS)).filter((name) => name.endsWith(".sql")).toSorted();
    const apply = async (name: string) => client.query(await readFile(new URL(name, MIGRATIONS), "utf8"));
    const own = names.findIndex((name) => name.endsWith("_partitions.sql"));
    for (const name of names.slice(0, own)) await apply(name);
    const old = { now: newId(), later: `0fffffff${newId().slice(8)}` };
    for (const runId of Object.values(old)) await aHistory(client, runId);
    const lies = "select pg_relation_filenode(tableoid) as file from holdpoint.steps where run_id = $1";
    const { rows: before } = await client.query(lies, [old.now]);
    for (const name of names.slice(own)) await apply(name);
    const { rows: after } = await client.query(lies, [old.now]);
    expect(after).toEqual(before);
    const { rows } = await client.query(
      `select run_id, tableoid::regclass::text as part from holdpoint.transitions
       union all select run_id, tableoid::regclass::text from holdpoint.steps
       union all select run_id, tableoid::regclass::text from holdpoint.calls
       union all select run_id, tableoid::regclass::text from holdpoint.attempts order by run_id, part`,
    );
    const histories = ["attempts", "calls", "steps", "transitions"];
    expect(
      rows.map(({ run_id, part }) => [run_id, part.replace(/^holdpoint\./, "").replace(/_\d{4}_\d{2}$/, "")]),
    ).toEqual([
      ...histories.map((history) => [old.now, `${history}_until`]),
      ...histories.map((history) => [old.later, `${history}_rest`]),
    ]);
    const { rows: named } = await client.query(
      `select i.relname as index from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
       where c.relname like 'steps\\_%' and not starts_with(i.relname, c.relname)`,
    );
    expect(named).toEqual([]);
  } finally {
    await client.end();
  }
});

/** A row of each history, as no verb would leave it: what counts here is where it lies. */
async function aHistory(client: pg.Client, runId: string): Promise<void> {
  await client.query(
    `insert into holdpoint.transitions (tenant_id, run_id, seq, to_status, event, actor_kind, actor_id, epoch, at)
     values ($1, $2, 1, 'queued', 'Submitted', 'requester', 'alice', 0, now())`,
    [TENANT, runId],
  );
  await client.query(
    `insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at) values ($1, $2, 1, 1, 'x', '{}', now())`,
    [TENANT, runId],
  );
  await client.query(
    `insert into holdpoint.calls (tenant_id, run_id, id, turn, ordinal, tool_call_id, tool, args, args_hash, operation_id,
       effect, verdict, timeout_ms, retries, throttled_for_ms, service, at)
     values ($1, $2, $2, 1, 0, 'c', 't', '{}', 'h', 'o', '{}', '{}', 1, 1, 1, 's', now())`,
    [TENANT, runId],
  );
  await client.query(
    `insert into holdpoint.attempts (tenant_id, run_id, id, call_id, number, worker, epoch, started_at, deadline_at)
     values ($1, $2, $2, $2, 1, $2, 1, now(), now())`,
    [TENANT, runId],
  );
}
