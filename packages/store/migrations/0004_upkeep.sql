-- What was judged last of a run that looked silent, written when it changes. Evidence is small: it names, it holds nothing.
CREATE TABLE holdpoint.verdicts (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  run_id uuid PRIMARY KEY,
  -- The version at which it was judged: a verdict about another one is judged anew.
  run_version integer NOT NULL,
  verdict text NOT NULL,
  reason text,
  rule text NOT NULL,
  evidence jsonb NOT NULL,
  until timestamptz,
  at timestamptz NOT NULL,
  CONSTRAINT verdict_is_known CHECK (verdict IN ('active', 'backing_present', 'not_authoritative_here', 'grace_pending',
    'evidence_unreadable', 'lost')),
  CONSTRAINT lost_says_why CHECK (verdict <> 'lost' OR reason IS NOT NULL),
  CONSTRAINT grace_says_until_when CHECK (verdict <> 'grace_pending' OR until IS NOT NULL),
  CONSTRAINT evidence_is_small CHECK (octet_length(evidence::text) <= 2048)
);
--> statement-breakpoint
CREATE INDEX verdicts_unwell ON holdpoint.verdicts (tenant_id, at) WHERE verdict <> 'active';
--> statement-breakpoint
-- Since when somebody has watched the leases without a gap, and who looked last, with which grace. Leases that ran out while
-- nobody watched prove nothing: the database may have been away, for the workers as well.
CREATE TABLE holdpoint.lease_watch (
  tenant_id uuid PRIMARY KEY REFERENCES holdpoint.tenants,
  since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  seen_by text NOT NULL,
  grace_ms integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE holdpoint.workers
  -- A process lives by its lease; a task, which somebody else works on, by its heartbeat, with a grace of its own.
  ADD COLUMN kind text NOT NULL DEFAULT 'process' CONSTRAINT worker_kind_is_known CHECK (kind IN ('process', 'task')),
  ADD COLUMN lease_ms integer NOT NULL DEFAULT 15000,
  ADD COLUMN grace_ms integer,
  -- How far its clock was ahead of this one at its last renewal, the way of the message included.
  ADD COLUMN skew_ms integer,
  ADD COLUMN drain_requested_at timestamptz,
  ADD COLUMN drain_requested_by text,
  ADD COLUMN stay_down boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT drain_says_by_whom CHECK ((drain_requested_at IS NULL) = (drain_requested_by IS NULL));
--> statement-breakpoint
CREATE INDEX runs_with_children ON holdpoint.runs (id) WHERE live_children > 0;
--> statement-breakpoint
-- How long runs are kept after their end, in days. What ended after a loss, by a person, is kept as long as what failed.
CREATE TABLE holdpoint.retention (
  tenant_id uuid PRIMARY KEY REFERENCES holdpoint.tenants,
  succeeded_days integer NOT NULL DEFAULT 30,
  partial_days integer NOT NULL DEFAULT 30,
  blocked_days integer NOT NULL DEFAULT 30,
  failed_days integer NOT NULL DEFAULT 30,
  cancelled_days integer NOT NULL DEFAULT 30,
  -- From the removal of a run: how long its tombstone and its idempotency keys are kept.
  tombstone_days integer NOT NULL DEFAULT 365,
  changed_at timestamptz NOT NULL DEFAULT holdpoint.clock(),
  changed_by text NOT NULL DEFAULT 'default',
  CONSTRAINT days_are_possible CHECK (least(succeeded_days, partial_days, blocked_days, failed_days, cancelled_days,
    tombstone_days) >= 1 AND greatest(succeeded_days, partial_days, blocked_days, failed_days, cancelled_days,
    tombstone_days) <= 36500)
);
--> statement-breakpoint
INSERT INTO holdpoint.retention (tenant_id) SELECT id FROM holdpoint.tenants;
--> statement-breakpoint
-- What is left of a run that was removed: enough to answer a repeated request and to find what was done outside.
CREATE TABLE holdpoint.tombstones (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  run_id uuid PRIMARY KEY,
  line uuid NOT NULL,
  parent uuid,
  agent_name text NOT NULL,
  agent_version text NOT NULL,
  requester text NOT NULL,
  status text NOT NULL CHECK (status IN ('completed', 'failed', 'cancelled')),
  outcome text,
  ended_at timestamptz NOT NULL,
  removed_at timestamptz NOT NULL,
  -- [{"operationId", "externalRef", "tool", "service", "outcome", "at", "failedAt"}]
  effects jsonb NOT NULL
);
--> statement-breakpoint
CREATE INDEX tombstones_removed ON holdpoint.tombstones (tenant_id, removed_at);
--> statement-breakpoint
CREATE INDEX tombstones_effects ON holdpoint.tombstones USING gin (effects jsonb_path_ops) WHERE effects <> '[]';
--> statement-breakpoint
CREATE INDEX idempotency_keys_by_run ON holdpoint.idempotency_keys (run_id);
--> statement-breakpoint
CREATE INDEX inbox_by_run ON holdpoint.inbox (run_id);
--> statement-breakpoint
-- When retention looks again at a run that something kept, so that those which are kept never hide those which are not.
ALTER TABLE holdpoint.runs ADD COLUMN kept_until timestamptz,
  -- A run is not removed while another that does it again is about to be submitted, or has been.
  ADD CONSTRAINT retried_run_exists FOREIGN KEY (retry_of) REFERENCES holdpoint.runs;
--> statement-breakpoint
CREATE INDEX runs_by_retried ON holdpoint.runs (retry_of) WHERE retry_of IS NOT NULL;
--> statement-breakpoint
-- Trees are found by their roots: children go with them.
CREATE INDEX runs_ended ON holdpoint.runs (tenant_id, (CASE WHEN status = 'completed' THEN outcome ->> 'kind' ELSE status END),
  ended_at) WHERE ended_at IS NOT NULL AND parent IS NULL AND kept_until IS NULL;
--> statement-breakpoint
CREATE INDEX runs_kept ON holdpoint.runs (tenant_id, kept_until) WHERE kept_until IS NOT NULL;
--> statement-breakpoint
-- The last of its runs was removed.
ALTER TABLE holdpoint.sessions ADD COLUMN emptied_at timestamptz;
--> statement-breakpoint
CREATE INDEX sessions_emptied ON holdpoint.sessions (tenant_id, emptied_at) WHERE emptied_at IS NOT NULL;
--> statement-breakpoint
CREATE INDEX sessions_unused ON holdpoint.sessions (tenant_id, created_at) WHERE message_seq = 0 AND emptied_at IS NULL;
--> statement-breakpoint
-- Which runs refer to an artifact: it is stored once by its content, and shared.
CREATE TABLE holdpoint.artifact_uses (
  tenant_id uuid NOT NULL,
  run_id uuid NOT NULL,
  sha256 text NOT NULL,
  PRIMARY KEY (run_id, sha256)
);
--> statement-breakpoint
CREATE INDEX artifact_uses_by_content ON holdpoint.artifact_uses (tenant_id, sha256);
--> statement-breakpoint
INSERT INTO holdpoint.artifact_uses (tenant_id, run_id, sha256)
  SELECT DISTINCT s.tenant_id, s.run_id, m.found[1]
  FROM holdpoint.steps s CROSS JOIN LATERAL regexp_matches(s.body::text, 'artifact ([0-9a-f]{64})', 'g') AS m (found)
  WHERE EXISTS (SELECT FROM holdpoint.artifacts a WHERE a.tenant_id = s.tenant_id AND a.sha256 = m.found[1]);
--> statement-breakpoint
-- Since when no run may refer to it any more; null again as soon as one stores it anew.
ALTER TABLE holdpoint.artifacts ADD COLUMN loose_since timestamptz;
--> statement-breakpoint
UPDATE holdpoint.artifacts a SET loose_since = holdpoint.clock() WHERE NOT EXISTS
  (SELECT FROM holdpoint.artifact_uses u WHERE u.tenant_id = a.tenant_id AND u.sha256 = a.sha256);
--> statement-breakpoint
CREATE INDEX artifacts_loose ON holdpoint.artifacts (tenant_id, loose_since) WHERE loose_since IS NOT NULL;
--> statement-breakpoint
-- What is asked of children in every pass is asked of the live ones, however many have ended.
CREATE INDEX runs_live_children ON holdpoint.runs (parent) WHERE parent IS NOT NULL AND ended_at IS NULL;
--> statement-breakpoint
-- What the other side has accepted for later: few, and asked about long after.
CREATE INDEX steps_pending ON holdpoint.steps (run_id) WHERE kind = 'effect_pending';
