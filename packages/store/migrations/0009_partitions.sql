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
-- The smallest id that can be made at that moment (UUIDv7).
CREATE FUNCTION holdpoint.first_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
--> statement-breakpoint
-- An attempt is written with its start and once more with its end; the other histories are only appended to.
CREATE FUNCTION holdpoint.history_fillfactor(history text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE history WHEN 'attempts' THEN 85 ELSE 100 END
$$;
--> statement-breakpoint
-- Makes the partition of a history for the runs of a time. False: it is there already.
-- What is locked, and until when: the new table is made apart, with all indexes. Attaching it takes SHARE UPDATE EXCLUSIVE on
-- the history, with which reads and writes go on, and ACCESS EXCLUSIVE on the default partition, which every statement
-- touches that has not been told its run when it was planned: they wait for a change of the catalog, and for a look
-- through the default partition, which is empty. Whoever waits for that lock keeps the others waiting behind it, so
-- nobody waits for long: it is tried again later.
CREATE FUNCTION holdpoint.make_partition(history text, lower_at timestamptz, upper_at timestamptz) RETURNS boolean
  LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE
  part text := history || to_char(lower_at AT TIME ZONE 'UTC', '_YYYY_MM');
BEGIN
  PERFORM pg_advisory_xact_lock(4846513710);
  IF to_regclass(format('holdpoint.%I', part)) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE holdpoint.%I (LIKE holdpoint.%I INCLUDING ALL) WITH (fillfactor = %s)', part, history,
    holdpoint.history_fillfactor(history));
  EXECUTE format('ALTER TABLE holdpoint.%I ATTACH PARTITION holdpoint.%I FOR VALUES FROM (%L) TO (%L)', history, part,
    holdpoint.first_id(lower_at), holdpoint.first_id(upper_at));
  RETURN true;
END $$;
--> statement-breakpoint
-- Drops a partition that has no row. False: it has one, or is none of this history any more.
-- Dropping it takes ACCESS EXCLUSIVE on the history and its default partition, for a change of the catalog (detaching it
-- concurrently, which needs less, is refused while there is a default partition). The locks are taken first, from the
-- history down as every statement does, so that what was looked at is still so; and as above nobody waits for long.
CREATE FUNCTION holdpoint.drop_partition(history text, part text) RETURNS boolean
  LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE
  is_used boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(4846513710);
  EXECUTE format('LOCK TABLE ONLY holdpoint.%I IN ACCESS EXCLUSIVE MODE', history);
  PERFORM FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhrelid = to_regclass(format('holdpoint.%I', part)) AND i.inhparent = to_regclass(format('holdpoint.%I', history))
      AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  EXECUTE format('LOCK TABLE holdpoint.%I IN ACCESS EXCLUSIVE MODE', part);
  EXECUTE format('SELECT EXISTS (SELECT FROM holdpoint.%I)', part) INTO is_used;
  IF NOT is_used THEN
    EXECUTE format('DROP TABLE holdpoint.%I', part);
  END IF;
  RETURN NOT is_used;
END $$;
--> statement-breakpoint
-- What there is becomes the partition of everything until the end of this month, as it lies: nothing is copied, each table
-- is read once. The default partition is empty after that, so that attaching others never reads much. Ids of a clock that
-- was ahead stay there.
DO $$
DECLARE
  upper_at timestamptz := (date_trunc('month', holdpoint.clock() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  history text;
  part text;
  old_index text;
BEGIN
  FOREACH history IN ARRAY ARRAY['transitions', 'steps', 'calls', 'attempts'] LOOP
    part := history || to_char(upper_at AT TIME ZONE 'UTC', '"_until_"YYYY_MM');
    EXECUTE format('ALTER TABLE holdpoint.%I DETACH PARTITION holdpoint.%I', history, history || '_rest');
    EXECUTE format('ALTER TABLE holdpoint.%I RENAME TO %I', history || '_rest', part);
    FOR old_index IN SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE i.indrelid = to_regclass(format('holdpoint.%I', part)) AND starts_with(c.relname, history || '_rest')
    LOOP
      EXECUTE format('ALTER INDEX holdpoint.%I RENAME TO %I', old_index, part || substr(old_index, length(history || '_rest') + 1));
    END LOOP;
    EXECUTE format('CREATE TABLE holdpoint.%I PARTITION OF holdpoint.%I DEFAULT', history || '_rest', history);
    EXECUTE format('WITH later AS (DELETE FROM holdpoint.%I WHERE run_id >= %L RETURNING *) INSERT INTO holdpoint.%I SELECT * FROM later',
      part, holdpoint.first_id(upper_at), history || '_rest');
    EXECUTE format('ALTER TABLE holdpoint.%I ATTACH PARTITION holdpoint.%I FOR VALUES FROM (MINVALUE) TO (%L)', history, part,
      holdpoint.first_id(upper_at));
    EXECUTE format('ALTER TABLE holdpoint.%I SET (fillfactor = %s)', part, holdpoint.history_fillfactor(history));
    EXECUTE format('ALTER TABLE holdpoint.%I SET (fillfactor = %s)', history || '_rest', holdpoint.history_fillfactor(history));
  END LOOP;
END $$;
