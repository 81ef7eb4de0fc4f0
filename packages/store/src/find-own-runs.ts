import { type Store, statement } from "./db.ts";
import { execute, executeBatch, failureKind } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/**
 * Which of these runs are this worker's, after a claim whose answer was lost. It waits for a claim that is still under
 * way on the server.
 *
 * @throws when the database cannot be reached.
 */
export async function findOwnRuns(
  store: Store,
  { workerId, runIds }: { readonly workerId: string; readonly runIds: readonly string[] },
): Promise<readonly Run[]> {
  const outcomes = await executeBatch<string, { ord: number; run: RunJson }>(runIds, async (items) => {
    const ids = items.map(({ item }) => item);
    const rows = await execute<{ run: RunJson }>(store, FIND, [store.tenantId, ids]);
    return rows.map((row) => ({ ...row, ord: runIds.indexOf(row.run.id) }));
  });
  return outcomes
    .flatMap((outcome) => {
      if (!(outcome instanceof Error)) return outcome;
      // What is no id of a run is nobody's run.
      if (failureKind(outcome) === "data") return [];
      throw outcome;
    })
    .map(({ run }) => runOf(run))
    .filter(({ state }) => state.owner === workerId);
}

/** The owner is no part of the condition: a row that is being claimed has none in this statement's snapshot. */
const FIND = statement(
  "find_own_runs",
  `select to_jsonb(r) as run from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.id = any($2::uuid[]) order by r.id for update`,
);
