import { TERMINAL_STATUSES } from "@holdpoint/core";

// The webhooks' outbox, as a part of each statement that changes a run's status: what is told and what happened are always
// the same. A webhook that is registered while a statement waits for its rows is not told of it.

/** Most of a reason that is told, in characters. */
const REASON_LENGTH = 500;

const ENDED = `(${TERMINAL_STATUSES.map((status) => `'${status}'`).join(", ")})`;

/**
 * What each webhook is told of changed statuses, one row for each. `changes` is a select of the run, its version, status,
 * instant, agent's name and version, parent, outcome, end reason and `waiting_for`, as of that version.
 */
const announced = (changes: string): string => `
announced as (
  insert into holdpoint.deliveries (tenant_id, id, webhook_id, run_id, version, status, outcome, notice, next_at, created_at)
  select $1::uuid, holdpoint.new_id(c.at), w.id, c.run_id, c.version, c.status, o.outcome->>'kind',
    jsonb_build_object('agent', jsonb_build_object('name', c.agent_name, 'version', c.agent_version), 'parent', c.parent,
      'reason', left(coalesce(o.outcome->>'reason', c.end_reason), ${REASON_LENGTH}),
      'waitingFor', case when c.waiting_for is not null then
        jsonb_build_object('kind', c.waiting_for->'kind', 'principal', c.waiting_for->'principal') end),
    c.at, c.at
  from (${changes})
    as c (run_id, version, status, at, agent_name, agent_version, parent, outcome, end_reason, waiting_for)
  -- A run that was asked to stop keeps what its owner said at the end, as evidence: it is told as cancelled, and no more.
  cross join lateral (select case when c.status = 'completed' then c.outcome end as outcome) as o
  join holdpoint.webhooks w on w.tenant_id = $1::uuid and w.disabled_at is null
    and (w.agent_name is null or w.agent_name = c.agent_name)
    and (w.policy = 'state_changes' or (w.policy = 'done_only' and c.status in ${ENDED}))
)`;

/** What is told of rows of runs that `source` returns, under a condition on the row `r`. */
export const announcedOf = (source: string, condition = "true"): string =>
  announced(`select r.id, r.version, r.status, r.updated_at, r.agent_name, r.agent_version, r.parent, r.outcome,
      r.end_reason, r.waiting_for
    from ${source} r where ${condition}`);

/** What is told of the moves of `moved`: each entry of its log that changed the status; the row says more of the last. */
export const MOVES_ANNOUNCED = announced(`
    select m.run_id, (m.expected + t.n)::int, t.entry->>'to', m.at, m.run->>'agent_name', m.run->>'agent_version',
      m.run->>'parent', (now_so.run->'outcome')::jsonb, now_so.run->>'end_reason', nullif((now_so.run->'waiting_for')::jsonb, 'null'::jsonb)
    from moved m
    cross join lateral jsonb_array_elements(m.log) with ordinality as t (entry, n)
    cross join lateral (select case when t.entry->>'to' = m.status then m.run end as run) as now_so
    where t.entry->>'from' <> t.entry->>'to'`);
