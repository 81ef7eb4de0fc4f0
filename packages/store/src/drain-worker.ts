import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

export type DrainResult =
  /** It is told with its next renewal; asking again changes nothing but that it may be told to stay down as well. */
  { readonly result: "asked" } | { readonly result: "gone" } | { readonly result: "not_found" };

/**
 * Asks a worker to drain: to take up nothing more, to let its current steps finish, to give every run back and to end. It
 * is a request on its row, which the answer to its next renewal carries; what a worker has open is waited for by itself,
 * so nothing outside is cut off and no attempt is spent.
 */
export async function drainWorker(
  store: Store,
  { workerId, by, stayDown }: { readonly workerId: string; readonly by: string; readonly stayDown: boolean },
): Promise<DrainResult> {
  const [row] = await execute<{ asked: boolean }>(store, DRAIN, [store.tenantId, workerId, by, stayDown]);
  if (row === undefined) return { result: "not_found" };
  return { result: row.asked ? "asked" : "gone" };
}

/** Whoever asked first stays the one who is named; a gone worker's row is never touched. */
const DRAIN = statement(
  "drain_worker",
  `with asked as (
     update holdpoint.workers set
       drain_requested_at = coalesce(drain_requested_at, holdpoint.clock()),
       drain_requested_by = coalesce(drain_requested_by, $3), stay_down = stay_down or $4::boolean
     where tenant_id = $1::uuid and id = $2::uuid and gone_at is null and kind = 'process'
     returning id
   )
   select exists (select from asked) as asked from holdpoint.workers
   where tenant_id = $1::uuid and id = $2::uuid and kind = 'process'`,
);
