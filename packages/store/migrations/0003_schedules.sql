-- What starts runs by itself. Its due times are stored instants; pattern and zone say how the next one is found.
CREATE TABLE holdpoint.schedules (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  name text NOT NULL,
  agent_name text NOT NULL,
  agent_version text NOT NULL,
  goal text NOT NULL,
  cron text,
  zone text,
  once_at timestamptz,
  overlap text NOT NULL,
  catch_up_slots integer NOT NULL,
  catch_up_within_ms bigint NOT NULL,
  -- Grows with every change and every slot: whoever acts on a schedule names the one that was read.
  version integer NOT NULL,
  next_slot_at timestamptz,
  queued_slot_at timestamptz,
  -- The lines of its last run and of those that had not ended when that one was started.
  lines uuid[] NOT NULL DEFAULT '{}',
  -- Everybody who has said what it does, the first is its owner: they stand behind its runs.
  authors text[] NOT NULL,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  changed_at timestamptz NOT NULL,
  changed_by text NOT NULL,
  paused_at timestamptz,
  paused_by text,
  deleted_at timestamptz,
  deleted_by text,
  CONSTRAINT schedule_says_when CHECK ((cron IS NULL) = (zone IS NULL) AND (cron IS NULL) <> (once_at IS NULL)),
  CONSTRAINT schedule_overlap_is_known CHECK (overlap IN ('skip', 'queue', 'replace')),
  CONSTRAINT schedule_catch_up_is_bounded CHECK (catch_up_slots BETWEEN 0 AND 100 AND catch_up_within_ms >= 0),
  CONSTRAINT schedule_pause_says_by_whom CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
  CONSTRAINT schedule_end_says_by_whom CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
  CONSTRAINT nothing_queued_where_nothing_starts CHECK (queued_slot_at IS NULL OR (paused_at IS NULL AND deleted_at IS NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX schedules_name ON holdpoint.schedules (tenant_id, name) WHERE deleted_at IS NULL;
--> statement-breakpoint
CREATE INDEX schedules_due ON holdpoint.schedules (tenant_id, next_slot_at)
  WHERE next_slot_at IS NOT NULL AND paused_at IS NULL AND deleted_at IS NULL;
--> statement-breakpoint
CREATE INDEX schedules_queued ON holdpoint.schedules (tenant_id, queued_slot_at) WHERE queued_slot_at IS NOT NULL;
--> statement-breakpoint
-- What became of each slot; a manual one is a person's start between them.
CREATE TABLE holdpoint.schedule_slots (
  tenant_id uuid NOT NULL,
  schedule_id uuid NOT NULL REFERENCES holdpoint.schedules,
  slot_at timestamptz NOT NULL,
  manual boolean NOT NULL DEFAULT false,
  state text NOT NULL,
  reason text,
  -- The run that kept it from starting, or keeps it waiting.
  earlier_run uuid,
  run_id uuid,
  session_id uuid,
  -- Who stands behind its run: nobody of them approves what that asks for.
  causes text[] NOT NULL DEFAULT '{}',
  started_by text,
  at timestamptz NOT NULL,
  PRIMARY KEY (schedule_id, slot_at, manual),
  CONSTRAINT slot_state_is_known CHECK (state IN ('started', 'skipped', 'queued', 'replaced', 'missed')),
  CONSTRAINT started_slot_has_a_run CHECK (state <> 'started' OR (run_id IS NOT NULL AND session_id IS NOT NULL)),
  CONSTRAINT slot_without_a_run_says_why CHECK (state = 'started' OR reason IS NOT NULL),
  CONSTRAINT manual_start_says_by_whom CHECK (manual = (started_by IS NOT NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX schedule_slots_one_queued ON holdpoint.schedule_slots (schedule_id) WHERE state = 'queued';
--> statement-breakpoint
CREATE INDEX schedule_slots_by_session ON holdpoint.schedule_slots (session_id) WHERE session_id IS NOT NULL;
--> statement-breakpoint
CREATE INDEX schedule_slots_by_run ON holdpoint.schedule_slots (run_id) WHERE run_id IS NOT NULL;
--> statement-breakpoint
-- Slots without a run, for their removal; those with one go with it.
CREATE INDEX schedule_slots_past ON holdpoint.schedule_slots (tenant_id, at) WHERE run_id IS NULL AND state <> 'queued';
--> statement-breakpoint
-- Who did what to a schedule; append-only.
CREATE TABLE holdpoint.schedule_changes (
  tenant_id uuid NOT NULL,
  schedule_id uuid NOT NULL REFERENCES holdpoint.schedules,
  version integer NOT NULL,
  change text NOT NULL,
  actor_id text NOT NULL,
  definition jsonb,
  at timestamptz NOT NULL,
  PRIMARY KEY (schedule_id, version),
  CONSTRAINT schedule_change_is_known CHECK (change IN ('created', 'changed', 'paused', 'resumed', 'deleted')),
  CONSTRAINT schedule_change_says_what CHECK ((change IN ('created', 'changed')) = (definition IS NOT NULL))
);
--> statement-breakpoint
-- What is known of somebody beyond one conversation. A new value is a new row: a run is shown those of its creation.
CREATE TABLE holdpoint.memories (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  key text NOT NULL,
  value text NOT NULL,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  expires_at timestamptz NOT NULL,
  deleted_at timestamptz,
  deleted_by text,
  CONSTRAINT memory_value_is_small CHECK (octet_length(value) <= 4096),
  CONSTRAINT memory_key_is_small CHECK (octet_length(key) <= 200),
  CONSTRAINT memory_expires CHECK (expires_at > created_at AND expires_at <= created_at + interval '366 days'),
  CONSTRAINT memory_end_says_by_whom CHECK ((deleted_at IS NULL) = (deleted_by IS NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX memories_key ON holdpoint.memories (tenant_id, subject, key) WHERE deleted_at IS NULL;
--> statement-breakpoint
CREATE INDEX memories_by_subject ON holdpoint.memories (tenant_id, subject, created_at);
--> statement-breakpoint
CREATE INDEX memories_ended ON holdpoint.memories (tenant_id, (least(deleted_at, expires_at)));
