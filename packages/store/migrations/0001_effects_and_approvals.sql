-- Who may decide what, as it is now: read at the decision and again when the approval is spent.
CREATE TABLE holdpoint.role_assignments (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  user_id text NOT NULL,
  role text NOT NULL,
  granted_at timestamptz NOT NULL,
  granted_by text NOT NULL,
  revoked_at timestamptz,
  revoked_by text,
  PRIMARY KEY (tenant_id, user_id, role),
  CONSTRAINT revoked_says_by_whom CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
--> statement-breakpoint
-- What operators have forbidden while the fleet runs; the rules that ask belong to the agents.
CREATE TABLE holdpoint.deny_rules (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  id uuid PRIMARY KEY,
  name text NOT NULL,
  rule jsonb NOT NULL,
  reason text NOT NULL,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  lifted_at timestamptz,
  lifted_by text,
  CONSTRAINT lifted_says_by_whom CHECK ((lifted_at IS NULL) = (lifted_by IS NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX deny_rules_in_force ON holdpoint.deny_rules (tenant_id, name) WHERE lifted_at IS NULL;
--> statement-breakpoint
-- Grows with every change of deny rules and assignments, on the locked row, so that its order is the order of commits.
-- An intent names the one that its plan was made with; any other is refused, and planned anew.
ALTER TABLE holdpoint.tenants ADD COLUMN policy_revision integer NOT NULL DEFAULT 0;
--> statement-breakpoint
ALTER TABLE holdpoint.runs
  ADD COLUMN submitted_by text NOT NULL DEFAULT '',
  ADD COLUMN claimed_at timestamptz,
  ADD COLUMN worked_ms bigint NOT NULL DEFAULT 0;
--> statement-breakpoint
UPDATE holdpoint.runs SET submitted_by = requester;
--> statement-breakpoint
ALTER TABLE holdpoint.runs ALTER COLUMN submitted_by DROP DEFAULT;
--> statement-breakpoint
ALTER TABLE holdpoint.calls
  ADD COLUMN service text NOT NULL DEFAULT '',
  ADD COLUMN throttled_for_ms bigint NOT NULL DEFAULT 86400000;
--> statement-breakpoint
ALTER TABLE holdpoint.calls ALTER COLUMN service DROP DEFAULT, ALTER COLUMN throttled_for_ms DROP DEFAULT;
--> statement-breakpoint
UPDATE holdpoint.calls SET effect = effect || '{"settlement": null}' WHERE effect->>'kind' = 'effect';
--> statement-breakpoint
UPDATE holdpoint.calls SET verdict = jsonb_set(verdict, '{approval}', '{"quorum": 1, "veto": true, "fourEyes": true,
  "decisions": ["approve", "reject"], "answerSchema": null, "remindAfterMs": [], "escalation": []}' || (verdict->'approval'))
  WHERE verdict->>'kind' = 'needs_approval';
--> statement-breakpoint
-- What an agent has registered before takes no other arguments until it registers anew.
UPDATE holdpoint.agents SET tools = (SELECT coalesce(jsonb_agg('{"inputSchema": {"not": {}}, "rules": [],
  "presentation": {"redact": [], "amount": null, "risk": null}}' || tool), '[]') FROM jsonb_array_elements(tools) AS t (tool));
--> statement-breakpoint
-- What ran: a person may have changed what the model said.
ALTER TABLE holdpoint.attempts ADD COLUMN args_hash text;
--> statement-breakpoint
CREATE INDEX attempts_external_ref ON holdpoint.attempts (external_ref) WHERE external_ref IS NOT NULL;
--> statement-breakpoint
CREATE INDEX attempts_late ON holdpoint.attempts (run_id) WHERE late_at IS NOT NULL;
--> statement-breakpoint
ALTER TABLE holdpoint.approvals
  ADD COLUMN terms jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN request jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN level integer NOT NULL DEFAULT 0,
  ADD COLUMN extended boolean NOT NULL DEFAULT false,
  ADD COLUMN quorum integer NOT NULL DEFAULT 1,
  ADD COLUMN given integer NOT NULL DEFAULT 0,
  ADD COLUMN edited_by text,
  ADD COLUMN answer jsonb,
  ADD COLUMN remind_at timestamptz,
  ADD COLUMN reminders integer NOT NULL DEFAULT 0,
  ADD COLUMN closed_at timestamptz,
  ADD COLUMN closed_reason text;
--> statement-breakpoint
UPDATE holdpoint.approvals a SET given = (a.state IN ('approved', 'spent'))::int,
  closed_at = CASE WHEN a.state IN ('expired', 'withdrawn') THEN coalesce(a.decided_at, a.deadline) END,
  closed_reason = CASE WHEN a.state IN ('expired', 'withdrawn') THEN a.state END, terms = jsonb_build_object(
  'rule', a.rule, 'approvers', jsonb_build_object('roles', a.roles, 'users', a.users), 'quorum', 1, 'veto', true,
  'fourEyes', true, 'decisions', '["approve", "reject"]'::jsonb, 'answerSchema', null, 'remindAfterMs', '[]'::jsonb,
  'escalation', '[]'::jsonb, 'deadlineMs', (extract(epoch from a.deadline - a.requested_at) * 1000)::bigint,
  'onDeadline', a.on_deadline, 'validForMs', a.valid_for_ms), request = jsonb_build_object('redactedArgs', a.args::jsonb,
  'modelReason', null, 'amount', null, 'risk', null, 'evidence', '[]'::jsonb, 'editSchema', null);
--> statement-breakpoint
ALTER TABLE holdpoint.approvals ALTER COLUMN terms DROP DEFAULT, ALTER COLUMN request DROP DEFAULT,
  ALTER COLUMN quorum DROP DEFAULT;
--> statement-breakpoint
ALTER TABLE holdpoint.approvals DROP CONSTRAINT state_is_known, DROP CONSTRAINT decided_says_who;
--> statement-breakpoint
ALTER TABLE holdpoint.approvals
  ADD CONSTRAINT state_is_known CHECK (state IN ('pending', 'approved', 'spent', 'rejected', 'answered', 'skipped',
    'expired', 'superseded', 'withdrawn')),
  ADD CONSTRAINT decided_says_who CHECK (state NOT IN ('approved', 'spent', 'rejected', 'answered', 'skipped')
    OR (decided_at IS NOT NULL AND decided_by IS NOT NULL)),
  ADD CONSTRAINT approved_by_enough CHECK (state NOT IN ('approved', 'spent') OR given >= quorum);
--> statement-breakpoint
CREATE INDEX approvals_to_remind ON holdpoint.approvals (remind_at) WHERE state = 'pending' AND remind_at IS NOT NULL;
--> statement-breakpoint
ALTER TABLE holdpoint.decisions DROP CONSTRAINT decisions_decision_check,
  DROP CONSTRAINT decisions_approval_id_actor_id_key;
--> statement-breakpoint
ALTER TABLE holdpoint.decisions
  ADD COLUMN level integer NOT NULL DEFAULT 0,
  ADD COLUMN payload jsonb NOT NULL DEFAULT 'null',
  ADD CONSTRAINT decision_is_known CHECK (decision IN ('approve', 'approve_with_edits', 'reject', 'reject_and_abort',
    'respond', 'skip', 'escalate')),
  ADD CONSTRAINT one_decision_a_person UNIQUE (approval_id, actor_id, level);
--> statement-breakpoint
-- One row a stage: a reminder is made once, whoever sweeps, and however often.
CREATE TABLE holdpoint.reminders (
  tenant_id uuid NOT NULL,
  approval_id uuid NOT NULL REFERENCES holdpoint.approvals,
  stage integer NOT NULL,
  run_id uuid NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (approval_id, stage)
);
--> statement-breakpoint
CREATE INDEX reminders_by_run ON holdpoint.reminders (run_id);
--> statement-breakpoint
-- The limiter of a service that turns everybody away, or is down: shared by all runs that need it.
CREATE TABLE holdpoint.services (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  name text NOT NULL,
  reason text NOT NULL CHECK (reason IN ('throttled', 'unavailable')),
  failures integer NOT NULL,
  since timestamptz NOT NULL,
  closed_until timestamptz,
  probe_until timestamptz,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
--> statement-breakpoint
-- What the other side reported by itself, once for each of its events.
CREATE TABLE holdpoint.callbacks (
  tenant_id uuid NOT NULL REFERENCES holdpoint.tenants,
  source text NOT NULL,
  event_id text NOT NULL,
  run_id uuid NOT NULL,
  call_id uuid NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'settled', 'failed')),
  received_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, source, event_id)
);
--> statement-breakpoint
CREATE INDEX callbacks_by_run ON holdpoint.callbacks (run_id);
