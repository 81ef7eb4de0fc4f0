-- Work that is done elsewhere: a run that none of our workers takes. Its executor is a worker row of kind 'task', which
-- owns the run by an ordinary claim and lives by its heartbeat.
ALTER TABLE holdpoint.runs ADD COLUMN is_task boolean NOT NULL DEFAULT false;
--> statement-breakpoint
UPDATE holdpoint.runs r SET is_task = true FROM holdpoint.agents g
  WHERE g.tenant_id = r.tenant_id AND g.name = r.agent_name AND g.version = r.agent_version AND g.kind = 'task';
--> statement-breakpoint
CREATE INDEX runs_tasks ON holdpoint.runs (tenant_id, id) WHERE is_task;
--> statement-breakpoint
-- What an executor is held to: {"description", "heartbeatMs", "graceMs", "onFailure", "retries"}.
ALTER TABLE holdpoint.agents ADD COLUMN task jsonb;
--> statement-breakpoint
UPDATE holdpoint.agents SET task = '{"description": "", "heartbeatMs": 60000, "graceMs": 60000, "onFailure": "operator", "retries": 1}'
  WHERE kind = 'task';
--> statement-breakpoint
ALTER TABLE holdpoint.agents ADD CONSTRAINT task_says_its_terms CHECK ((kind = 'task') = (task IS NOT NULL));
--> statement-breakpoint
-- One row for each time that somebody has the task in hands, by the epoch of that claim: it outlives the claim, so that
-- an earlier executor is known when it comes back. A row that nobody has started is a token given out in advance.
CREATE TABLE holdpoint.tasks (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  run_id uuid NOT NULL,
  epoch integer NOT NULL,
  -- The SHA-256 of its token, in hex; the token itself is nowhere.
  token_hash text NOT NULL,
  issued_at timestamptz NOT NULL,
  issued_by text NOT NULL,
  worker_id uuid,
  executor text,
  -- The SHA-256 of the key under which it was started: the same start again is no other one.
  start_key text,
  heartbeat_ms integer NOT NULL,
  grace_ms integer NOT NULL,
  started_at timestamptz,
  last_heartbeat_at timestamptz,
  progress jsonb,
  -- What the executor said last, without the result, and the hash of all of it: said again, it changes nothing.
  report jsonb,
  report_hash text,
  reported_at timestamptz,
  -- What it said when the task was not in its hands any more. Whoever says it writes it once.
  late_evidence jsonb,
  late_at timestamptz,
  PRIMARY KEY (run_id, epoch),
  CONSTRAINT started_says_by_whom CHECK ((started_at IS NULL) = (worker_id IS NULL) AND (started_at IS NULL) = (executor IS NULL)
    AND (started_at IS NULL) = (last_heartbeat_at IS NULL)),
  CONSTRAINT only_a_started_task_reports CHECK (started_at IS NOT NULL
    OR (progress IS NULL AND report IS NULL AND late_at IS NULL)),
  CONSTRAINT report_says_when CHECK ((report IS NULL) = (reported_at IS NULL) AND (report IS NULL) = (report_hash IS NULL)),
  CONSTRAINT late_evidence_says_when CHECK ((late_at IS NULL) = (late_evidence IS NULL)),
  CONSTRAINT token_is_a_hash CHECK (token_hash ~ '^[0-9a-f]{64}$'),
  CONSTRAINT task_times_are_possible CHECK (heartbeat_ms > 0 AND grace_ms >= 0),
  CONSTRAINT progress_is_small CHECK (octet_length(progress::text) <= 4096),
  CONSTRAINT report_is_small CHECK (octet_length(report::text) <= 16384),
  CONSTRAINT late_evidence_is_small CHECK (octet_length(late_evidence::text) <= 262144)
);
--> statement-breakpoint
CREATE INDEX tasks_late ON holdpoint.tasks (tenant_id, late_at) WHERE late_at IS NOT NULL;
--> statement-breakpoint
CREATE INDEX tasks_by_worker ON holdpoint.tasks (worker_id) WHERE worker_id IS NOT NULL;
