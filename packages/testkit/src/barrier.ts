// For interleavings: hold a statement at a row lock, let somebody else commit, let it go on.
//
//   await first.query("begin"); await first.query("update …");    // holds the row
//   const pid = await backendPid(second);
//   const late = second.query("update …");                        // waits for it
//   await untilWaiting(admin, pid);
//   await first.query("commit");
//   await late;

import type { Client, PoolClient } from "pg";
import { waitFor } from "./wait-for.ts";

const DEADLINE_MS = 10_000;

/** The server process of a connection; ask before the statement that is going to wait. */
export async function backendPid(client: Client | PoolClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const [row] = rows;
  if (row === undefined) throw new Error("pg_backend_pid() gave no row");
  return row.pid;
}

/**
 * Resolves when the server process waits for a lock that another one holds.
 *
 * @param admin  A third connection: the other two are busy.
 * @throws {Error} it did not wait within 10 s; the message has what it was doing.
 */
export async function untilWaiting(admin: Client | PoolClient, pid: number): Promise<void> {
  let seen = "not there";
  const isWaiting = async () => {
    const { rows } = await admin.query<{ waiting: boolean; seen: string }>(
      `select wait_event_type = 'Lock' and cardinality(pg_blocking_pids(pid)) > 0 as waiting,
              concat_ws(' ', state, wait_event_type, wait_event) as seen
         from pg_stat_activity where pid = $1`,
      [pid],
    );
    seen = rows[0]?.seen ?? "not there";
    return rows[0]?.waiting === true;
  };
  await waitFor(isWaiting, { deadlineMs: DEADLINE_MS, what: `process ${pid} to wait for a lock` }).catch((cause) => {
    throw new Error(`process ${pid} does not wait for a lock (${seen})`, { cause });
  });
}
