import { randomUUID } from "node:crypto";
import pg from "pg";
import { openBareQueue } from "./bullmq-server.ts";
import type { Contestant } from "./contestant.ts";
import { flushStatistics } from "./statistics.ts";

const BULK = 500;

/**
 * The ceiling: a run is a row, a step is a row, a transition is a row, and what concurrent runs do is committed together
 * in one statement. No checks but the version and the owner, no intents, no leases, no agent.
 */
export const strawMan: Contestant = {
  name: "straw man",
  schema: { name: "straw", migrate },
  program: new URL("./straw-worker-program.ts", import.meta.url),
  sql: {
    waits: "select exists (select from run where status <> 'completed') as waits",
    endedAt: "select extract(epoch from max(updated_at))::float8 as seconds from run where status = 'completed'",
    steps: "select count(*)::int as steps from step",
    stepTimes: "select extract(epoch from at)::float8 as seconds from step",
    progress:
      "select sum(step_seq)::int as steps, min(step_seq) as least, max(step_seq) as most from run where id = any($1)",
  },
  async openClient({ url, queue: connection }) {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    // It may be the database's end that ends a connection which the pool has given up already.
    pool.on("error", () => undefined);
    const queue = await openBareQueue(connection);
    return {
      async submit(runs) {
        const ids = Array.from({ length: runs }, () => randomUUID());
        await pool.query("insert into run (id, status, version) select id, 'queued', 1 from unnest($1::uuid[]) i(id)", [
          ids,
        ]);
        await flushStatistics([pool]);
        return {
          ids,
          async announce() {
            for (let from = 0; from < ids.length; from += BULK) await queue.add(ids.slice(from, from + BULK));
          },
        };
      },
      async [Symbol.asyncDispose]() {
        await queue.close();
        await pool.end();
      },
    };
  },
};

async function migrate(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(TABLES);
  } finally {
    await client.end();
  }
}

const TABLES = `
create table run (
  id uuid primary key, status text not null, version int not null, owner text, step_seq int not null default 0,
  waiting_for text, updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70);
create table transition (
  run_id uuid not null, seq int not null, status text not null, event text not null, actor text not null,
  at timestamptz not null default clock_timestamp(), primary key (run_id, seq)
);
create table step (
  run_id uuid not null, seq int not null, result jsonb not null,
  at timestamptz not null default clock_timestamp(), primary key (run_id, seq)
);`;
