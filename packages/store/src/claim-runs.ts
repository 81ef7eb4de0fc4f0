import { LONE_TAKEOVERS, reduce, STATUSES, submitted } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { LOADED, type LoadedJson, type LoadedRun, loadedOf, loadRun } from "./load-run.ts";

export interface Claim {
  readonly runIds: readonly string[];
  readonly workerId: string;
  /** The run must show progress within this time, in milliseconds. */
  readonly progressMs: number;
  /** Whether this process may take a run that was lost twice in a row: it takes one at a time, so that the guilty one fails alone. */
  readonly mayTakeSuspect: boolean;
}

/**
 * Claims runs for a worker and loads all that is needed to continue, in one round trip. The condition is the status
 * and no owner, never the version of the wake-up; a run that somebody else is moving is passed over.
 *
 * @returns the runs that are now this worker's, in order of their ids.
 */
export async function claimRuns(store: Store, claim: Claim): Promise<readonly LoadedRun[]> {
  const rows = await execute<LoadedJson & { complete: boolean }>(store, CLAIM, [
    store.tenantId,
    claim.runIds,
    claim.workerId,
    claim.progressMs,
    claim.mayTakeSuspect,
    LONE_TAKEOVERS,
    CLAIMABLE.map(({ from }) => from),
    CLAIMABLE.map(({ to }) => to),
  ]);
  return Promise.all(
    rows.map(async (row) => {
      if (row.complete) return loadedOf(row);
      // The statement waited for somebody's change: it owns the row as it is now, but loaded the rest as it was before.
      const reloaded = await loadRun(store, row.run.id);
      return reloaded ?? loadedOf(row);
    }),
  );
}

/** Which statuses a claim takes and where it leads, by core's table. */
const CLAIMABLE = STATUSES.flatMap((from) => {
  const sample = { ...submitted(), status: from, openAttempts: 1, waitDeadline: null, queuedSince: null };
  const decision = reduce(sample, { type: "Claimed", owner: "worker" }, { kind: "worker", id: "worker" });
  return decision.verdict === "moved" || decision.verdict === "recorded" ? [{ from, to: decision.next.status }] : [];
});

const CLAIM = statement(
  "claim_runs",
  `
with rules as materialized (
  select * from unnest($7::text[], $8::text[]) as t(from_status, to_status)
),
locked as materialized (
  select r.id, r.status, r.takeovers + (r.lost_at is not null)::int >= $6::int as suspect from holdpoint.runs r
  where r.tenant_id = $1::uuid and r.id = any($2::uuid[]) and r.owner is null
    and r.status = any($7::text[]) and (r.status = 'queued' or r.open_attempts > 0)
  order by r.id for update skip locked
),
-- Suspects are taken one at a time.
chosen as materialized (
  select l.id, l.status, l.suspect, row_number() over (partition by l.suspect order by l.id) as place from locked l
),
moved as (
  update holdpoint.runs r set
    status = t.to_status, version = r.version + 1, epoch = r.epoch + 1, owner = $3::uuid,
    takeovers = r.takeovers + (r.lost_at is not null)::int, lost_at = null, lost_reason = null,
    queued_since = null, wait_deadline = case when t.to_status = t.from_status then r.wait_deadline end,
    progress_due_at = holdpoint.clock() + $4::float8 * interval '1 millisecond',
    updated_at = greatest(holdpoint.clock(), r.updated_at)
  from chosen c join rules t on t.from_status = c.status
  where r.id = c.id and r.owner is null and (not c.suspect or ($5::boolean and c.place = 1))
  returning r.*, t.from_status
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, m.id, m.version, m.from_status, m.status, 'Claimed', 'worker', $3::text, m.epoch, null, m.updated_at
  from moved m
)
select to_jsonb(r) - 'from_status' as run,
  s.version = r.version - 1 and s.step_seq = r.step_seq as complete,
  ${LOADED}
from moved r join holdpoint.runs s on s.id = r.id
order by r.id`,
);
