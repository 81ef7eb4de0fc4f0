// What no check constraint can say, since it spans rows or tables. A healthy database has no row of any of these.

import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** A run that breaks a rule which every run keeps. */
export interface Violation {
  readonly rule: string;
  readonly runId: string;
}

/** Looks for runs that break an invariant: at most 1 000 of them, all in one snapshot. Reads everything; not for hot paths. */
export async function findViolations(store: Store): Promise<readonly Violation[]> {
  const rows = await execute<{ rule: string; run_id: string }>(store, FIND, [store.tenantId]);
  return rows.map(({ rule, run_id: runId }) => ({ rule, runId }));
}

const ENDED = "('completed', 'failed', 'cancelled')";

const AWAITS_APPROVAL = `(r.status = 'waiting_approval'
  or (r.status = 'paused' and r.resume_to->>'to' = 'hold' and r.resume_to->'hold'->>'kind' = 'approval'))`;

/** Conditions on a run `r`. */
const OF_RUNS = {
  owner_is_no_worker: "r.owner is not null and not exists (select from holdpoint.workers w where w.id = r.owner)",
  running_without_owner: "r.status = 'running' and r.owner is null",
  open_attempts_differ: `r.open_attempts <>
    (select count(*) from holdpoint.attempts a where a.run_id = r.id and a.ended_at is null)`,
  steps_have_a_gap: `r.step_seq <> (select count(*) from holdpoint.steps s where s.run_id = r.id)
    or r.step_seq <> (select coalesce(max(s.seq), 0) from holdpoint.steps s where s.run_id = r.id)`,
  checkpoint_is_behind: "(r.checkpoint->>'stepSeq')::int <> r.step_seq",
  transitions_have_a_gap: `r.version <> (select count(*) from holdpoint.transitions t where t.run_id = r.id)
    or r.version <> (select coalesce(max(t.seq), 0) from holdpoint.transitions t where t.run_id = r.id)`,
  status_is_not_the_last_transitions: `r.status <>
    (select t.to_status from holdpoint.transitions t where t.run_id = r.id order by t.seq desc limit 1)`,
  pending_approval_without_wait: `not ${AWAITS_APPROVAL}
    and exists (select from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending')`,
  waits_for_no_approval: `${AWAITS_APPROVAL}
    and not exists (select from holdpoint.approvals p where p.run_id = r.id and p.state = 'pending')`,
  ended_with_unspent_approval: `r.ended_at is not null
    and exists (select from holdpoint.approvals p where p.run_id = r.id and p.state = 'approved')`,
  waits_without_deadline: `r.wait_deadline is null and r.status not in ('running', 'retrying', 'completed', 'failed', 'cancelled')`,
  queued_without_since: "r.status = 'queued' and r.queued_since is null",
} as const;

/** Selects of run ids from the tables that have no foreign key to runs, or that tell a run's history. */
const OF_HISTORY = {
  moved_after_its_end: `select t.run_id from holdpoint.transitions t
    where t.tenant_id = $1::uuid and t.from_status in ${ENDED} and (t.event <> 'EffectSettled' or t.to_status <> t.from_status)`,
  transitions_do_not_join: `select t.run_id from (
      select run_id, from_status, lag(to_status) over (partition by run_id order by seq) as before
      from holdpoint.transitions where tenant_id = $1::uuid) t
    where t.from_status is distinct from t.before`,
  history_without_run: ["transitions", "steps", "calls", "attempts", "inbox", "approvals"]
    .map(
      (table) => `select h.run_id from holdpoint.${table} h where h.tenant_id = $1::uuid
        and not exists (select from holdpoint.runs r where r.id = h.run_id)`,
    )
    .join(" union "),
} as const;

const SELECTS = [
  ...Object.entries(OF_RUNS).map(
    ([rule, condition]) =>
      `select '${rule}' as rule, r.id as run_id from holdpoint.runs r where r.tenant_id = $1::uuid and (${condition})`,
  ),
  ...Object.entries(OF_HISTORY).map(([rule, found]) => `select '${rule}' as rule, f.run_id from (${found}) f`),
];

const FIND = statement("find_violations", `${SELECTS.join("\nunion ")}\norder by rule, run_id limit 1000`);
