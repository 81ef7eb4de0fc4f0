import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import type { CallbackRecord } from "./move.ts";

/** What became of a report about an effect whose run was removed. */
export interface BuriedReport {
  readonly runId: string;
  /** It had happened, and now it is said for the first time to have failed: a person has to know. */
  readonly isNews: boolean;
}

/**
 * Notes on its tombstone that an effect which had happened is now said to have failed: the run is past its retention, so
 * nobody else can be told. Of what its run has known all the same nothing is noted. Null: there is no such effect.
 */
export async function reportBuried(
  store: Store,
  {
    source,
    status,
    effect,
  }: Pick<CallbackRecord, "source" | "status"> & {
    readonly effect: { readonly externalRef: string } | { readonly operationId: string };
  },
): Promise<BuriedReport | null> {
  const key = JSON.stringify([{ ...effect, service: source }]);
  const [row] = await execute<{ run_id: string; is_news: boolean }>(store, REPORT, [
    store.tenantId,
    key,
    status === "failed",
  ]);
  return row === undefined ? null : { runId: row.run_id, isNews: row.is_news };
}

const NEWS = `$3::boolean and e @> ($2::jsonb->0) and e->>'failedAt' is null and e->>'outcome' in ('succeeded', 'happened')`;

const REPORT = statement(
  "report_buried",
  `with named as materialized (
     select t.run_id, t.effects, exists (select from jsonb_array_elements(t.effects) as e where ${NEWS}) as is_news
     from holdpoint.tombstones t
     where t.tenant_id = $1::uuid and t.effects <> '[]' and t.effects @> $2::jsonb
     order by t.removed_at desc, t.run_id limit 1 for update
   ),
   noted as (
     update holdpoint.tombstones t set effects = (
       select jsonb_agg(case when ${NEWS} then e || jsonb_build_object('failedAt', holdpoint.clock()) else e end order by n)
       from jsonb_array_elements(t.effects) with ordinality as x(e, n))
     from named n where t.run_id = n.run_id and n.is_news
   )
   select run_id, is_news from named`,
);
