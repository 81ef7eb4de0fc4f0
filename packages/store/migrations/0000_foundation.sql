CREATE SCHEMA IF NOT EXISTS holdpoint;
--> statement-breakpoint
-- The clock of everything that is written. Not now(): that is old after a wait for a lock. Whole milliseconds, so that
-- an instant survives the way through a client unchanged.
CREATE FUNCTION holdpoint.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
  AS $$ select date_trunc('milliseconds', pg_catalog.clock_timestamp()) $$;
--> statement-breakpoint
-- The clock of conditions on indexes: stable, and inlined by the planner.
CREATE FUNCTION holdpoint.now() RETURNS timestamptz LANGUAGE sql STABLE
  AS $$ select pg_catalog.now() $$;
--> statement-breakpoint
-- {"at": ms} is a moment that was read before; {"inMs": ms} is one that counts from now on this clock.
CREATE FUNCTION holdpoint.instant(moment jsonb) RETURNS timestamptz LANGUAGE sql VOLATILE
  AS $$ select case
    when moment ? 'at' then to_timestamp((moment->>'at')::double precision / 1000)
    when moment ? 'inMs' then holdpoint.clock() + (moment->>'inMs')::double precision * interval '1 millisecond'
  end $$;
--> statement-breakpoint
CREATE TABLE holdpoint.tenants (
  id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT holdpoint.clock()
);
--> statement-breakpoint
INSERT INTO holdpoint.tenants (id, name) VALUES ('00000000-0000-7000-8000-000000000000', 'default');
--> statement-breakpoint
CREATE TABLE holdpoint.sessions (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  requester text NOT NULL,
  message_seq integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT holdpoint.clock()
);
--> statement-breakpoint
CREATE TABLE holdpoint.messages (
  tenant_id uuid NOT NULL,
  session_id uuid NOT NULL REFERENCES holdpoint.sessions,
  seq integer NOT NULL,
  role text NOT NULL CHECK (role IN ('user', 'assistant')),
  author text NOT NULL,
  text text NOT NULL,
  run_id uuid,
  at timestamptz NOT NULL,
  PRIMARY KEY (session_id, seq)
);
--> statement-breakpoint
CREATE TABLE holdpoint.agents (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  name text NOT NULL,
  version text NOT NULL,
  tools jsonb NOT NULL,
  registered_at timestamptz NOT NULL DEFAULT holdpoint.clock(),
  PRIMARY KEY (tenant_id, name, version)
);
--> statement-breakpoint
CREATE TABLE holdpoint.workers (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  host text NOT NULL,
  pid integer NOT NULL,
  agents jsonb NOT NULL,
  slots integer NOT NULL,
  started_at timestamptz NOT NULL,
  lease_until timestamptz NOT NULL,
  gone_at timestamptz,
  gone_reason text,
  CONSTRAINT gone_says_why CHECK ((gone_at IS NULL) = (gone_reason IS NULL))
);
--> statement-breakpoint
CREATE INDEX workers_lease ON holdpoint.workers (lease_until) WHERE gone_at IS NULL;
--> statement-breakpoint
CREATE TABLE holdpoint.runs (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES holdpoint.sessions,
  agent_name text NOT NULL,
  agent_version text NOT NULL,
  requester text NOT NULL,
  goal text NOT NULL,
  input_seq integer NOT NULL,
  line uuid NOT NULL,
  retry_of uuid,
  parent uuid,
  status text NOT NULL,
  version integer NOT NULL,
  step_seq integer NOT NULL DEFAULT 0,
  epoch integer NOT NULL DEFAULT 0,
  owner uuid,
  current_step text,
  checkpoint jsonb NOT NULL,
  progress_due_at timestamptz,
  external_ref text,
  open_attempts integer NOT NULL DEFAULT 0,
  live_children integer NOT NULL DEFAULT 0,
  takeovers integer NOT NULL DEFAULT 0,
  queued_since timestamptz,
  waiting_for jsonb,
  waiting_since timestamptz,
  hold_seq integer,
  wait_deadline timestamptz,
  on_deadline text,
  retry_at timestamptz,
  next_reconcile_at timestamptz,
  look_ups_end_at timestamptz,
  look_ups_over boolean NOT NULL DEFAULT false,
  cancel_requested_at timestamptz,
  pause_requested_at timestamptz,
  paused_at timestamptz,
  resume_to jsonb,
  lost_at timestamptz,
  lost_reason text,
  outcome jsonb,
  end_reason text,
  ended_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT status_is_known CHECK (status IN ('queued', 'running', 'waiting_input', 'waiting_approval',
    'waiting_dependency', 'waiting_operator', 'retrying', 'outcome_unknown', 'paused', 'lost', 'cancelling',
    'completed', 'failed', 'cancelled')),
  CONSTRAINT counters_are_natural CHECK (open_attempts >= 0 AND live_children >= 0 AND takeovers >= 0 AND step_seq >= 0),
  CONSTRAINT owner_only_where_work_is CHECK (owner IS NULL OR status IN ('running', 'outcome_unknown', 'cancelling')),
  CONSTRAINT queued_is_complete CHECK (status <> 'queued' OR (queued_since IS NOT NULL AND wait_deadline IS NOT NULL)),
  CONSTRAINT running_is_complete CHECK (status <> 'running' OR (owner IS NOT NULL AND progress_due_at IS NOT NULL)),
  CONSTRAINT waiting_is_complete CHECK (status NOT LIKE 'waiting\_%'
    OR (waiting_for IS NOT NULL AND waiting_since IS NOT NULL AND wait_deadline IS NOT NULL AND on_deadline IS NOT NULL
    AND hold_seq IS NOT NULL)),
  CONSTRAINT operator_hold_says_why CHECK (status <> 'waiting_operator' OR waiting_for ->> 'reason' IS NOT NULL),
  CONSTRAINT retrying_is_complete CHECK (status <> 'retrying' OR retry_at IS NOT NULL),
  CONSTRAINT unknown_is_complete CHECK (status <> 'outcome_unknown'
    OR (open_attempts > 0 AND next_reconcile_at IS NOT NULL AND wait_deadline IS NOT NULL)),
  CONSTRAINT paused_is_complete CHECK (status <> 'paused'
    OR (paused_at IS NOT NULL AND resume_to IS NOT NULL AND wait_deadline IS NOT NULL)),
  CONSTRAINT lost_is_complete CHECK (status <> 'lost'
    OR (lost_at IS NOT NULL AND lost_reason IS NOT NULL AND wait_deadline IS NOT NULL)),
  CONSTRAINT cancelling_is_complete CHECK (status <> 'cancelling'
    OR (cancel_requested_at IS NOT NULL AND wait_deadline IS NOT NULL)),
  CONSTRAINT ended_is_complete CHECK ((status IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL)),
  CONSTRAINT completed_says_what CHECK (status <> 'completed' OR outcome IS NOT NULL),
  CONSTRAINT no_end_with_open_work CHECK (ended_at IS NULL OR (open_attempts = 0 AND live_children = 0)),
  CONSTRAINT checkpoint_is_small CHECK (octet_length(checkpoint::text) <= 2048)
) WITH (fillfactor = 70);
--> statement-breakpoint
-- step_seq, checkpoint, current_step and progress_due_at are in no index: a step's update stays on its page (HOT).
CREATE INDEX runs_queued ON holdpoint.runs (tenant_id, agent_name, agent_version, queued_since) WHERE status = 'queued';
--> statement-breakpoint
CREATE INDEX runs_owner ON holdpoint.runs (owner) WHERE owner IS NOT NULL;
--> statement-breakpoint
CREATE INDEX runs_deadline ON holdpoint.runs (wait_deadline) WHERE wait_deadline IS NOT NULL;
--> statement-breakpoint
CREATE INDEX runs_retry ON holdpoint.runs (retry_at) WHERE status = 'retrying';
--> statement-breakpoint
CREATE INDEX runs_look_up ON holdpoint.runs (tenant_id, agent_name, agent_version, next_reconcile_at)
  WHERE next_reconcile_at IS NOT NULL AND owner IS NULL;
--> statement-breakpoint
CREATE INDEX runs_cancelling ON holdpoint.runs (cancel_requested_at) WHERE status = 'cancelling';
--> statement-breakpoint
CREATE INDEX runs_waiting_for ON holdpoint.runs (tenant_id, (waiting_for ->> 'kind'), (waiting_for ->> 'principal'), id)
  WHERE waiting_for IS NOT NULL;
--> statement-breakpoint
CREATE INDEX runs_by_status ON holdpoint.runs (tenant_id, status, id);
--> statement-breakpoint
CREATE INDEX runs_by_session ON holdpoint.runs (session_id, id);
--> statement-breakpoint
CREATE INDEX runs_by_parent ON holdpoint.runs (parent) WHERE parent IS NOT NULL;
--> statement-breakpoint
CREATE UNIQUE INDEX runs_one_live_per_line ON holdpoint.runs (tenant_id, line) WHERE ended_at IS NULL;
--> statement-breakpoint
CREATE INDEX runs_by_line ON holdpoint.runs (line);
--> statement-breakpoint
-- History is partitioned by run: a UUIDv7 is ordered by time, so a run stays in one partition and old ones can be
-- dropped whole. None of these tables has a foreign key to runs.
CREATE TABLE holdpoint.transitions (
  tenant_id uuid NOT NULL,
  run_id uuid NOT NULL,
  seq integer NOT NULL,
  from_status text,
  to_status text NOT NULL,
  event text NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  epoch integer NOT NULL,
  reason text,
  at timestamptz NOT NULL,
  PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);
--> statement-breakpoint
CREATE TABLE holdpoint.transitions_rest PARTITION OF holdpoint.transitions DEFAULT;
--> statement-breakpoint
CREATE TABLE holdpoint.steps (
  tenant_id uuid NOT NULL,
  run_id uuid NOT NULL,
  seq integer NOT NULL,
  epoch integer NOT NULL,
  kind text NOT NULL,
  body jsonb NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);
--> statement-breakpoint
CREATE TABLE holdpoint.steps_rest PARTITION OF holdpoint.steps DEFAULT;
--> statement-breakpoint
CREATE TABLE holdpoint.calls (
  tenant_id uuid NOT NULL,
  run_id uuid NOT NULL,
  id uuid NOT NULL,
  turn integer NOT NULL,
  ordinal integer NOT NULL,
  tool_call_id text NOT NULL,
  tool text NOT NULL,
  args text NOT NULL,
  args_hash text NOT NULL,
  operation_id text NOT NULL,
  effect jsonb NOT NULL,
  verdict jsonb NOT NULL,
  timeout_ms integer NOT NULL,
  retries integer NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (run_id, id),
  UNIQUE (run_id, turn, ordinal)
) PARTITION BY RANGE (run_id);
--> statement-breakpoint
CREATE TABLE holdpoint.calls_rest PARTITION OF holdpoint.calls DEFAULT;
--> statement-breakpoint
CREATE INDEX calls_operation ON holdpoint.calls (operation_id);
--> statement-breakpoint
CREATE TABLE holdpoint.attempts (
  tenant_id uuid NOT NULL,
  run_id uuid NOT NULL,
  id uuid NOT NULL,
  call_id uuid NOT NULL,
  number integer NOT NULL,
  worker uuid NOT NULL,
  epoch integer NOT NULL,
  external_ref text,
  started_at timestamptz NOT NULL,
  deadline_at timestamptz NOT NULL,
  ended_at timestamptz,
  outcome text,
  settled_by text,
  error_class text,
  error_code text,
  look_ups integer NOT NULL DEFAULT 0,
  late_at timestamptz,
  late_evidence jsonb,
  PRIMARY KEY (run_id, id),
  UNIQUE (run_id, call_id, number),
  CONSTRAINT ended_says_how CHECK ((ended_at IS NULL) = (outcome IS NULL)),
  CONSTRAINT outcome_is_known CHECK (outcome IN ('succeeded', 'failed', 'happened', 'did_not_happen', 'superseded',
    'not_established'))
) PARTITION BY RANGE (run_id);
--> statement-breakpoint
CREATE TABLE holdpoint.attempts_rest PARTITION OF holdpoint.attempts DEFAULT;
--> statement-breakpoint
CREATE INDEX attempts_open ON holdpoint.attempts (run_id) WHERE ended_at IS NULL;
--> statement-breakpoint
CREATE TABLE holdpoint.refusals (
  tenant_id uuid NOT NULL,
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL,
  event text NOT NULL,
  rule text NOT NULL,
  status text NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  at timestamptz NOT NULL
);
--> statement-breakpoint
CREATE INDEX refusals_by_run ON holdpoint.refusals (run_id, at);
--> statement-breakpoint
CREATE TABLE holdpoint.inbox (
  tenant_id uuid NOT NULL,
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL,
  arrival bigint GENERATED ALWAYS AS IDENTITY,
  body jsonb NOT NULL,
  at timestamptz NOT NULL,
  read_in_step integer
);
--> statement-breakpoint
CREATE INDEX inbox_unread ON holdpoint.inbox (run_id, arrival) WHERE read_in_step IS NULL;
--> statement-breakpoint
CREATE TABLE holdpoint.approvals (
  tenant_id uuid NOT NULL,
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL,
  call_id uuid NOT NULL,
  hold_seq integer NOT NULL,
  tool text NOT NULL,
  args text NOT NULL,
  args_hash text NOT NULL,
  rule text NOT NULL,
  roles text[] NOT NULL,
  users text[] NOT NULL,
  excluded text[] NOT NULL,
  state text NOT NULL,
  requested_at timestamptz NOT NULL,
  deadline timestamptz NOT NULL,
  on_deadline text NOT NULL,
  valid_for_ms bigint NOT NULL,
  decided_at timestamptz,
  decided_by text,
  note text,
  valid_until timestamptz,
  spent_at timestamptz,
  spent_by uuid,
  CONSTRAINT state_is_known CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'withdrawn', 'spent')),
  CONSTRAINT decided_says_who CHECK (state NOT IN ('approved', 'rejected', 'spent')
    OR (decided_at IS NOT NULL AND decided_by IS NOT NULL)),
  CONSTRAINT approved_lapses CHECK (state NOT IN ('approved', 'spent') OR valid_until IS NOT NULL),
  CONSTRAINT spent_says_by_what CHECK (state <> 'spent' OR (spent_at IS NOT NULL AND spent_by IS NOT NULL))
);
--> statement-breakpoint
CREATE INDEX approvals_by_run ON holdpoint.approvals (run_id);
--> statement-breakpoint
CREATE INDEX approvals_open ON holdpoint.approvals (tenant_id, id) WHERE state = 'pending';
--> statement-breakpoint
CREATE UNIQUE INDEX approvals_one_pending_per_call ON holdpoint.approvals (run_id, call_id)
  WHERE state = 'pending';
--> statement-breakpoint
CREATE TABLE holdpoint.decisions (
  tenant_id uuid NOT NULL,
  id uuid PRIMARY KEY,
  approval_id uuid NOT NULL REFERENCES holdpoint.approvals,
  run_id uuid NOT NULL,
  actor_id text NOT NULL,
  decision text NOT NULL CHECK (decision IN ('approve', 'reject')),
  args_hash text NOT NULL,
  note text,
  at timestamptz NOT NULL,
  UNIQUE (approval_id, actor_id)
);
--> statement-breakpoint
CREATE TABLE holdpoint.artifacts (
  tenant_id uuid NOT NULL,
  sha256 text NOT NULL,
  size_bytes integer NOT NULL,
  media_type text NOT NULL,
  content text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, sha256)
);
--> statement-breakpoint
CREATE TABLE holdpoint.idempotency_keys (
  tenant_id uuid NOT NULL,
  principal text NOT NULL,
  key text NOT NULL,
  request_hash text NOT NULL,
  run_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, principal, key)
);
