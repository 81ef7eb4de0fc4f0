import type { Pool } from "pg";

// Bodies are canonical JSON in text columns: jsonb would normalise numbers and reorder keys, and hashes need the digits.
// The journal has no unique constraint on purpose: a second execution must be visible as a second row.
const SCHEMA = `
  create table if not exists tasks (
    task text primary key
  );
  create table if not exists task_objects (
    task text not null references tasks,
    kind text not null check (kind in ('order', 'user')),
    id text not null,
    body text not null,
    primary key (task, kind, id)
  );
  create table if not exists journal (
    id bigserial primary key,
    key text not null,
    task text not null,
    tool text not null,
    arguments_sha256 text not null,
    ok boolean not null,
    error_code text check ((error_code is null) = ok),
    result_sha256 text not null,
    result text not null,
    at timestamptz not null default clock_timestamp()
  );
  create index if not exists journal_key on journal (key);
  create index if not exists journal_task on journal (task, id);
`;

const MIGRATION_LOCK = 7_305_114; // any number that nothing else in this database uses

/** Creates the store's tables where they are missing; safe when several processes start at once. */
export async function migrateStore(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    await client.query(SCHEMA);
    await client.query("commit");
    client.release();
  } catch (error) {
    client.release(true); // the connection is closed, and with it the transaction
    throw error;
  }
}
