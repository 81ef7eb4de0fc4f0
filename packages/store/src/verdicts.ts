import { type JsonObject, type JudgedLiveness, LOST_REASONS, type LostReason } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import type { Run } from "./run.ts";
import { storableJson } from "./storable-json.ts";

/** A verdict about a run as it was at one version. */
export interface LivenessRecord extends JudgedLiveness {
  readonly runId: string;
  readonly version: number;
  /** What it was made from: names and instants, at most 2 KB. */
  readonly evidence: JsonObject;
}

/**
 * Stores verdicts, one row a run, where they say something else than the last one did; a verdict that says the same of a
 * newer version only moves on to it. A run that has moved meanwhile is left for the next pass.
 *
 * @returns the runs whose verdict has changed.
 */
export async function recordVerdicts(store: Store, records: readonly LivenessRecord[]): Promise<readonly string[]> {
  if (records.length === 0) return [];
  const input = storableJson(records);
  const rows = await execute<{ run_id: string; changed: boolean }>(store, RECORD, [store.tenantId, input]);
  return rows.flatMap(({ run_id: runId, changed }) => (changed ? [runId] : []));
}

/** The verdicts about runs that have been given up: each with why, and what was seen before it moved. */
export function lostRecords(
  moved: readonly Run[],
  losses: readonly { readonly run: Run; readonly reason: LostReason; readonly evidence?: JsonObject }[],
): readonly LivenessRecord[] {
  const byId = new Map(losses.map((loss) => [loss.run.id, loss]));
  return moved.flatMap(({ id: runId, version }) => {
    const loss = byId.get(runId);
    if (loss === undefined) return [];
    const { reason, evidence = {} } = loss;
    const rule = LOST_REASONS[reason].proof;
    return [{ runId, version, verdict: "lost" as const, rule, reason, untilMs: null, evidence }];
  });
}

/** Forgets what was said of these runs, if they have ended or are not there any more: nobody asks whether they live. */
export async function forgetVerdicts(store: Store, runIds: readonly string[]): Promise<number> {
  if (runIds.length === 0) return 0;
  return (await execute(store, FORGET, [store.tenantId, runIds])).length;
}

const RECORD = statement(
  "record_verdicts",
  `with input as materialized (
     select i.* from jsonb_to_recordset($2::jsonb) as i("runId" uuid, version int, verdict text, rule text, reason text,
       "untilMs" float8, evidence jsonb)
     join holdpoint.runs r on r.id = i."runId" and r.tenant_id = $1::uuid and r.version = i.version
   ),
   before as (select v.run_id, v.verdict, v.rule, v.reason from holdpoint.verdicts v join input i on i."runId" = v.run_id),
   written as (
     insert into holdpoint.verdicts as v (tenant_id, run_id, run_version, verdict, reason, rule, evidence, until, at)
     select $1::uuid, i."runId", i.version, i.verdict, i.reason, i.rule, i.evidence, to_timestamp(i."untilMs" / 1000),
       holdpoint.clock()
     from input i order by i."runId"
     on conflict (run_id) do update set run_version = excluded.run_version, verdict = excluded.verdict,
       reason = excluded.reason, rule = excluded.rule, evidence = excluded.evidence, until = excluded.until,
       at = case when (v.verdict, v.rule, v.reason) is distinct from (excluded.verdict, excluded.rule, excluded.reason)
         then excluded.at else v.at end
     where v.run_version <= excluded.run_version and (v.run_version <> excluded.run_version
       or (v.verdict, v.rule, v.reason) is distinct from (excluded.verdict, excluded.rule, excluded.reason))
     returning v.run_id, v.verdict, v.rule, v.reason
   )
   select w.run_id, (b.verdict, b.rule, b.reason) is distinct from (w.verdict, w.rule, w.reason) as changed
   from written w left join before b on b.run_id = w.run_id`,
);

const FORGET = statement(
  "forget_verdicts",
  `with over as materialized (
     select v.run_id from holdpoint.verdicts v left join holdpoint.runs r on r.id = v.run_id
     where v.tenant_id = $1::uuid and v.run_id = any($2::uuid[]) and (r.id is null or r.ended_at is not null)
     order by v.run_id for update of v skip locked
   )
   delete from holdpoint.verdicts v using over where v.run_id = over.run_id returning 1`,
);
