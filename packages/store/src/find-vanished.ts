import type { Store } from "./db.ts";
import { execute } from "./execute.ts";
import { type Looked, type Part, type Place, partStatement, sentFor } from "./round.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/** A run that counts on children which are not there. */
export interface VanishedChildren {
  readonly run: Run;
  /** How many of its live children have no row any more; 0 where only those that it waits for are over. */
  readonly missing: number;
}

/**
 * Runs whose row counts more live children than there are, and runs that wait for children of which none is left: those of
 * a part, at most `limit`. A child is made, and its end counted, in the statement that moves its parent's row: so this is
 * never a moment in between, but rows that have been taken away (a database put back in part, a hand on the tables). No
 * row says so, so all parents are looked at, a part in each pass.
 */
export async function findVanished(
  store: Store,
  { limit, part }: { readonly limit: number; readonly part: Part },
): Promise<Looked<VanishedChildren>> {
  const [row] = await execute<VanishedRow>(store, ...sentFor(FIND, part, [store.tenantId, limit]));
  if (row === undefined) throw new Error("the statement about vanished children gives one row");
  return { found: row.found.map(({ run, missing }) => ({ run: runOf(run), missing })), next: row.next };
}

type VanishedRow = { found: readonly { readonly run: RunJson; readonly missing: number }[]; next: Place };

const PARENTS = {
  id: "r.id",
  columns: ", r.live_children",
  from: "holdpoint.runs r where r.tenant_id = $1::uuid and r.live_children > 0",
};

const WAITING = {
  id: "r.id",
  columns: ", r.status, r.waiting_for ->> 'subject' as subject",
  from: `holdpoint.runs r where r.tenant_id = $1::uuid and r.waiting_for is not null
       and r.waiting_for ->> 'kind' = 'child'`,
};

const FIND = partStatement(
  "find_vanished",
  ({ list, next }) => `with ${list("parents", PARENTS)},
   ${list("waiting", WAITING)},
   counted as materialized (
     select p.id, p.live_children -
       (select count(*)::int from holdpoint.runs c where c.parent = p.id and c.told_parent_at is null) as missing
     from parents p
   ),
   orphaned as materialized (
     -- One look for each run: as "not exists", it may be answered from all children.
     select w.id from waiting w where w.status = 'waiting_dependency' and (
       select true from holdpoint.runs c where c.parent = w.id and c.told_parent_at is null
         and c.parent_call::text = coalesce(w.subject, c.parent_call::text) limit 1) is null
   ),
   vanished as materialized (
     select v.id, max(v.missing) as missing
     from (select id, missing from counted where missing > 0 union all select id, 0 from orphaned) v
     group by v.id order by v.id limit $2::int
   )
   select ${next(["parents", "waiting"])} as next,
     (select coalesce(jsonb_agg(jsonb_build_object('run', to_jsonb(r), 'missing', v.missing) order by r.id), '[]')
      from vanished v join holdpoint.runs r on r.id = v.id) as found`,
);
