import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/** A run that counts on children which are not there. */
export interface VanishedChildren {
  readonly run: Run;
  /** How many of its live children have no row any more; 0 where only those that it waits for are over. */
  readonly missing: number;
}

/**
 * Runs whose row counts more live children than there are, and runs that wait for children of which none is left. A child
 * is made, and its end counted, in the statement that moves its parent's row: so this is never a moment in between, but
 * rows that have been taken away (a database put back in part, a hand on the tables).
 */
export async function findVanished(store: Store, limit: number): Promise<readonly VanishedChildren[]> {
  const rows = await execute<{ run: RunJson; missing: number }>(store, FIND, [store.tenantId, limit]);
  return rows.map((row) => ({ run: runOf(row.run), missing: row.missing }));
}

const UNTOLD = "select count(*)::int from holdpoint.runs c where c.parent = r.id and c.told_parent_at is null";

const FIND = statement(
  "find_vanished",
  `with counted as materialized (
     select r.id, r.live_children - (${UNTOLD}) as missing
     from holdpoint.runs r where r.tenant_id = $1::uuid and r.live_children > 0
   ),
   waiting as materialized (
     select r.id from holdpoint.runs r
     where r.tenant_id = $1::uuid and r.waiting_for is not null and r.waiting_for ->> 'kind' = 'child'
       and r.status = 'waiting_dependency' and not exists (
         select from holdpoint.runs c where c.parent = r.id and c.told_parent_at is null
           and c.parent_call::text = coalesce(r.waiting_for ->> 'subject', c.parent_call::text))
   )
   select to_jsonb(r) as run, greatest(coalesce(k.missing, 0), 0) as missing
   from holdpoint.runs r left join counted k on k.id = r.id
   where r.id in (select id from counted where missing > 0 union select id from waiting)
   order by r.id limit $2::int`,
);
