-- A worker's renewal moves lease_until every few seconds, and what is in an index cannot be updated on its page alone (HOT).
-- So the lease is in none: sweeps read the living, which are few, and judge their leases.
DROP INDEX holdpoint.workers_lease;
--> statement-breakpoint
CREATE INDEX workers_living ON holdpoint.workers (tenant_id, kind, id) WHERE gone_at IS NULL;
--> statement-breakpoint
-- Half of each page is kept for the next version of its rows: a fleet that registers at once fills pages, and then renews.
ALTER TABLE holdpoint.workers SET (fillfactor = 50);
--> statement-breakpoint
-- A heartbeat moves a task's row and may bring another report of its progress.
ALTER TABLE holdpoint.tasks SET (fillfactor = 80);
--> statement-breakpoint
-- Settling an attempt takes it from this index, and so wrote anew to all the others. A run's open attempts are found by the run.
DROP INDEX holdpoint.attempts_open;
--> statement-breakpoint
-- Every message of a session moves its number; whether there has been one changes once.
ALTER TABLE holdpoint.sessions ADD COLUMN used boolean NOT NULL GENERATED ALWAYS AS (message_seq > 0) STORED;
--> statement-breakpoint
DROP INDEX holdpoint.sessions_unused;
--> statement-breakpoint
CREATE INDEX sessions_unused ON holdpoint.sessions (tenant_id, created_at) WHERE NOT used AND emptied_at IS NULL;
--> statement-breakpoint
ALTER TABLE holdpoint.sessions SET (fillfactor = 85);
--> statement-breakpoint
-- An attempt is written with its start and once more with its end.
ALTER TABLE holdpoint.attempts_rest SET (fillfactor = 85);
