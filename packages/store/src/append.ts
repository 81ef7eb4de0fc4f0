import { few, fewIds } from "./parts.ts";

/**
 * What a statement appends together with the move of a run's row. `transition` and `commit-steps` share these parts:
 * each reads `moved` (the rows that really moved, with the arrays that came in with them) and nothing else, so that what
 * is appended and what moved are always the same.
 *
 * Lock order of every statement: runs, then sessions, approvals, attempts, each by id.
 */

/** Messages of the session, numbered by the session's row; several runs of one session are numbered within the statement. */
export const SAID = `
spoken as materialized (
  select m.session_id, m.run_id, m.at, t.message,
         row_number() over (partition by m.session_id order by m.run_id, t.n) as n
  from moved m cross join lateral jsonb_array_elements(m.messages) with ordinality as t(message, n)
  where ${few("t.n")}
),
session_locked as materialized (
  select s.id from holdpoint.sessions s where s.id in (select session_id from spoken) order by s.id for update
),
session_moved as (
  update holdpoint.sessions s set message_seq = s.message_seq + c.n
  from (select session_id, count(*)::int as n from spoken group by session_id) c
  join session_locked l on l.id = c.session_id
  where s.id = c.session_id
  returning s.id, s.message_seq - c.n as base
),
said as (
  insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
  select $1::uuid, p.session_id, b.base + p.n, p.message->>'role', p.message->>'author', p.message->>'text', p.run_id, p.at
  from spoken p join session_moved b on b.id = p.session_id
)`;

const stepped = (column: string, value: string): string => `
stepped as (
  insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at${column})
  select $1::uuid, m.run_id, m.step_seq_before + t.n, m.epoch, t.body->>'kind', t.body, m.at${value}
  from moved m cross join lateral jsonb_array_elements(m.steps) with ordinality as t(body, n)
)`;

/** Steps, numbered from the row's step_seq before the statement. */
export const STEPPED = stepped("", "");

/** The same, some of them with calls that stand in them: lists by the places of the steps, with null where there are none. */
export const STEPPED_WITH_CALLS = stepped(", calls", `, nullif(m."replyCalls"->(t.n - 1)::int, 'null'::jsonb)`);

/** Attempts that this statement settles. */
export const SETTLED = `
settled as (
  update holdpoint.attempts a
  set ended_at = m.at, outcome = t.outcome, settled_by = t."settledBy", error_class = t."errorClass",
      error_code = t."errorCode", external_ref = coalesce(t."externalRef", a.external_ref)
  from moved m
  cross join lateral jsonb_to_recordset(m.settles)
    as t("attemptId" uuid, outcome text, "settledBy" text, "errorClass" text, "errorCode" text, "externalRef" text)
  where a.run_id = m.run_id and a.id = t."attemptId" and a.ended_at is null and ${fewIds('t."attemptId"')}
)`;

/**
 * Large outputs, stored once by their content, and which runs refer to them. One that was about to be removed is taken
 * back by whoever stores it anew: retention re-reads that on the row it locks.
 */
export const KEPT = `
kept as (
  insert into holdpoint.artifacts as a (tenant_id, sha256, size_bytes, media_type, content, created_at)
  select distinct on (t.sha256) $1::uuid, t.sha256, t."sizeBytes", t."mediaType", t.content, m.at
  from moved m
  cross join lateral jsonb_to_recordset(m.artifacts)
    as t(sha256 text, "sizeBytes" int, "mediaType" text, content text)
  order by t.sha256
  on conflict (tenant_id, sha256) do update set loose_since = null where a.loose_since is not null
),
artifact_used as (
  insert into holdpoint.artifact_uses (tenant_id, run_id, sha256)
  select distinct $1::uuid, m.run_id, t.artifact->>'sha256'
  from moved m cross join lateral jsonb_array_elements(m.artifacts) as t(artifact)
  on conflict do nothing
)`;
