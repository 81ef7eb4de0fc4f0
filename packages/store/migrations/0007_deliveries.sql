-- An id like those that the application mints (UUIDv7), where only the statement knows how many it needs.
CREATE FUNCTION holdpoint.new_id(at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM at) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;
--> statement-breakpoint
-- Who is told over HTTP when runs end or change.
CREATE TABLE holdpoint.webhooks (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  name text NOT NULL,
  url text NOT NULL,
  -- Signs what is sent, so it is kept as it is; no list shows it.
  secret text NOT NULL,
  policy text NOT NULL,
  -- Whose runs are told; null: every agent's.
  agent_name text,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  -- Who changed the policy last.
  changed_at timestamptz NOT NULL,
  changed_by text NOT NULL,
  -- Set once, and never cleared.
  disabled_at timestamptz,
  disabled_by text,
  CONSTRAINT policy_is_known CHECK (policy IN ('done_only', 'state_changes', 'silent')),
  CONSTRAINT url_is_short CHECK (octet_length(url) <= 2000),
  CONSTRAINT secret_is_long CHECK (octet_length(secret) >= 32),
  CONSTRAINT disabled_says_by_whom CHECK ((disabled_at IS NULL) = (disabled_by IS NULL))
);
--> statement-breakpoint
-- The name of one that was disabled is free again.
CREATE UNIQUE INDEX webhooks_name ON holdpoint.webhooks (tenant_id, name) WHERE disabled_at IS NULL;
--> statement-breakpoint
-- The outbox: what a webhook is told of one version of a run, written by the statement that made that version. Webhooks are
-- never removed, and a foreign key would have every transition lock their rows: there is none.
CREATE TABLE holdpoint.deliveries (
  tenant_id uuid NOT NULL,
  id uuid PRIMARY KEY,
  webhook_id uuid NOT NULL,
  run_id uuid NOT NULL,
  version integer NOT NULL,
  -- The run's status and, at its end, what it achieved: as of this version.
  status text NOT NULL,
  outcome text,
  -- {"agent", "parent", "reason", "waitingFor"}, as of this version.
  notice jsonb NOT NULL,
  state text NOT NULL DEFAULT 'pending',
  -- Grows when a sender takes it; what a sender reports names the attempt that it is about.
  attempts integer NOT NULL DEFAULT 0,
  -- When it is sent next; while one is under way, when it is sent again unless its sender has reported by then.
  next_at timestamptz,
  last_status integer,
  last_error_code text,
  created_at timestamptz NOT NULL,
  delivered_at timestamptz,
  CONSTRAINT deliveries_once UNIQUE (run_id, webhook_id, version),
  CONSTRAINT state_is_known CHECK (state IN ('pending', 'delivered', 'dead', 'dismissed')),
  CONSTRAINT pending_says_when CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  CONSTRAINT delivered_says_when CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
);
--> statement-breakpoint
CREATE INDEX deliveries_due ON holdpoint.deliveries (webhook_id, next_at) WHERE state = 'pending';
--> statement-breakpoint
CREATE INDEX deliveries_unsettled ON holdpoint.deliveries (tenant_id, state, created_at) WHERE state IN ('pending', 'dead');
--> statement-breakpoint
CREATE INDEX deliveries_dead ON holdpoint.deliveries (webhook_id) WHERE state = 'dead';
--> statement-breakpoint
-- What people did to single deliveries, and what became of those of a disabled webhook.
CREATE TABLE holdpoint.delivery_changes (
  tenant_id uuid NOT NULL,
  id uuid PRIMARY KEY,
  delivery_id uuid NOT NULL,
  run_id uuid NOT NULL,
  change text NOT NULL,
  actor_id text NOT NULL,
  note text,
  at timestamptz NOT NULL,
  CONSTRAINT change_is_known CHECK (change IN ('retried', 'dismissed'))
);
--> statement-breakpoint
CREATE INDEX delivery_changes_by_delivery ON holdpoint.delivery_changes (delivery_id, id);
--> statement-breakpoint
CREATE INDEX delivery_changes_by_run ON holdpoint.delivery_changes (run_id);
