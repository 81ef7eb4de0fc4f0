-- The cost of a sweep grows with what is due, not with what is stored: each has an index of its own, or goes through what is
-- stored a part at a time, by ids.
CREATE INDEX runs_waiting_kind ON holdpoint.runs (tenant_id, (waiting_for ->> 'kind'), id) WHERE waiting_for IS NOT NULL;
--> statement-breakpoint
CREATE INDEX runs_stopping_parents ON holdpoint.runs (id) WHERE status = 'cancelling' AND live_children > 0;
--> statement-breakpoint
CREATE INDEX runs_stopping_alone ON holdpoint.runs (id) WHERE status = 'cancelling' AND owner IS NULL AND live_children = 0;
--> statement-breakpoint
-- What is judged again in every pass is little; the other verdicts are gone through by their runs.
DROP INDEX holdpoint.verdicts_unwell;
--> statement-breakpoint
CREATE INDEX verdicts_unwell ON holdpoint.verdicts (tenant_id, run_id) WHERE verdict <> 'active';
--> statement-breakpoint
CREATE INDEX verdicts_in_doubt ON holdpoint.verdicts (tenant_id, run_id)
  WHERE verdict IN ('grace_pending', 'evidence_unreadable') AND reason IS DISTINCT FROM 'version_gone';
--> statement-breakpoint
-- Lists, the newest first: requests by their state and by who may decide them, the runs of one requester by its sessions.
DROP INDEX holdpoint.approvals_open;
--> statement-breakpoint
CREATE INDEX approvals_by_state ON holdpoint.approvals (tenant_id, state, id);
--> statement-breakpoint
CREATE INDEX approvals_by_role ON holdpoint.approvals USING gin (roles) WHERE state = 'pending';
--> statement-breakpoint
CREATE INDEX approvals_by_user ON holdpoint.approvals USING gin (users);
--> statement-breakpoint
CREATE INDEX sessions_by_requester ON holdpoint.sessions (tenant_id, requester, id);
--> statement-breakpoint
CREATE INDEX deliveries_dismissed ON holdpoint.deliveries (tenant_id, id) WHERE state = 'dismissed';
--> statement-breakpoint
-- Autovacuum comes by a share of the table, a fifth by default: of a million held runs 200 000 dead entries would lie in the
-- indexes that every pass reads from their heads (deadlines that have passed, retries that were made, deliveries sent). A
-- fiftieth, and a few thousand rows where there is little. The statistics likewise: how little is due has to be known.
ALTER TABLE holdpoint.runs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 5000);
--> statement-breakpoint
ALTER TABLE holdpoint.approvals SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0.02);
--> statement-breakpoint
ALTER TABLE holdpoint.deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0.02);
--> statement-breakpoint
ALTER TABLE holdpoint.inbox SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
--> statement-breakpoint
ALTER TABLE holdpoint.verdicts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
--> statement-breakpoint
-- Few rows, each written anew every few seconds: what is dead is many times what lives.
ALTER TABLE holdpoint.workers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
--> statement-breakpoint
ALTER TABLE holdpoint.tasks SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
--> statement-breakpoint
ALTER TABLE holdpoint.lease_watch SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
--> statement-breakpoint
ALTER TABLE holdpoint.services SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
--> statement-breakpoint
ALTER TABLE holdpoint.tenants SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
