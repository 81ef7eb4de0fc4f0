import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/** A run's row as it is now, or null. */
export async function findRow(store: Store, runId: string): Promise<Run | null> {
  const [row] = await execute<{ run: RunJson }>(store, FIND, [store.tenantId, runId]);
  return row === undefined ? null : runOf(row.run);
}

const FIND = statement(
  "find_row",
  "select to_jsonb(r) as run from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $2::uuid",
);
