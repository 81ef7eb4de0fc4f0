import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** How long runs are kept after their end, by what became of them, in days; and how long their tombstones after that. */
export interface Retention {
  readonly succeededDays: number;
  readonly partialDays: number;
  readonly blockedDays: number;
  readonly failedDays: number;
  /** A run that was lost and then ended by a person is kept at least as long as one that failed. */
  readonly cancelledDays: number;
  readonly tombstoneDays: number;
}

/** What the tenant keeps for how long; null: nothing is removed. */
export async function findRetention(store: Store): Promise<Retention | null> {
  const [row] = await execute<RetentionRow>(store, FIND, [store.tenantId]);
  return row === undefined ? null : retentionOf(row);
}

/**
 * Changes how long runs are kept; what is left out stays. What is past the new times goes with the next passes.
 *
 * @throws a check violation: something is less than a day, or more than a hundred years.
 */
export async function changeRetention(
  store: Store,
  { by, ...changes }: Partial<Retention> & { readonly by: string },
): Promise<Retention> {
  const [row] = await execute<RetentionRow>(store, CHANGE, [store.tenantId, by, JSON.stringify(changes)]);
  if (row === undefined) throw new Error("The retention's row did not come back from its update");
  return retentionOf(row);
}

interface RetentionRow {
  readonly succeeded_days: number;
  readonly partial_days: number;
  readonly blocked_days: number;
  readonly failed_days: number;
  readonly cancelled_days: number;
  readonly tombstone_days: number;
}

function retentionOf(row: RetentionRow): Retention {
  return {
    succeededDays: row.succeeded_days,
    partialDays: row.partial_days,
    blockedDays: row.blocked_days,
    failedDays: row.failed_days,
    cancelledDays: row.cancelled_days,
    tombstoneDays: row.tombstone_days,
  };
}

const COLUMNS = {
  succeeded_days: "succeededDays",
  partial_days: "partialDays",
  blocked_days: "blockedDays",
  failed_days: "failedDays",
  cancelled_days: "cancelledDays",
  tombstone_days: "tombstoneDays",
} as const satisfies Record<string, keyof Retention>;

const FIND = statement(
  "find_retention",
  `select ${Object.keys(COLUMNS).join(", ")} from holdpoint.retention where tenant_id = $1::uuid`,
);

const CHANGE = statement(
  "change_retention",
  `insert into holdpoint.retention as p (tenant_id, changed_at, changed_by) values ($1::uuid, holdpoint.clock(), $2)
   on conflict (tenant_id) do update set changed_at = holdpoint.clock(), changed_by = $2,
     ${Object.entries(COLUMNS)
       .map(([column, field]) => `${column} = coalesce(($3::jsonb->>'${field}')::int, p.${column})`)
       .join(", ")}
   returning ${Object.keys(COLUMNS).join(", ")}`,
);
