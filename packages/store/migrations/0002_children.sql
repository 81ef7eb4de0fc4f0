-- Runs that other runs have started. A child is no attempt of its call: a retry of the call is another try with another row.
ALTER TABLE holdpoint.runs
  -- From the root down to the parent; empty for a run that nobody has started but a person.
  ADD COLUMN ancestors uuid[] NOT NULL DEFAULT '{}',
  ADD COLUMN parent_call uuid,
  ADD COLUMN parent_ordinal integer,
  ADD COLUMN parent_try integer,
  -- Its end was counted on the parent's row. Until then the parent has it as live.
  ADD COLUMN told_parent_at timestamptz,
  -- What it is given beside its goal, and what it brings home, as stored values.
  ADD COLUMN input jsonb,
  ADD COLUMN result jsonb,
  -- Of the live runs of one agent at most one has it.
  ADD COLUMN instance_key text,
  ADD CONSTRAINT child_names_its_call CHECK ((parent IS NULL) = (parent_call IS NULL)
    AND (parent IS NULL) = (parent_ordinal IS NULL) AND (parent IS NULL) = (parent_try IS NULL)
    AND (parent IS NULL) = (cardinality(ancestors) = 0)),
  ADD CONSTRAINT ancestors_end_at_the_parent CHECK (parent IS NULL OR ancestors[cardinality(ancestors)] = parent),
  ADD CONSTRAINT told_after_its_end CHECK (told_parent_at IS NULL OR (parent IS NOT NULL AND ended_at IS NOT NULL));
--> statement-breakpoint
CREATE UNIQUE INDEX runs_child_once ON holdpoint.runs (parent, parent_call, parent_ordinal, parent_try)
  WHERE parent IS NOT NULL;
--> statement-breakpoint
DROP INDEX holdpoint.runs_by_parent;
--> statement-breakpoint
CREATE INDEX runs_by_root ON holdpoint.runs ((ancestors[1])) WHERE parent IS NOT NULL;
--> statement-breakpoint
CREATE INDEX runs_untold ON holdpoint.runs (parent)
  WHERE parent IS NOT NULL AND ended_at IS NOT NULL AND told_parent_at IS NULL;
--> statement-breakpoint
CREATE UNIQUE INDEX runs_one_live_per_instance ON holdpoint.runs (tenant_id, agent_name, instance_key)
  WHERE instance_key IS NOT NULL AND ended_at IS NULL;
--> statement-breakpoint
-- Agents and workflows are worked on by our workers; tasks by somebody else.
ALTER TABLE holdpoint.agents ADD COLUMN kind text NOT NULL DEFAULT 'agent'
  CONSTRAINT kind_is_known CHECK (kind IN ('agent', 'workflow', 'task'));
--> statement-breakpoint
-- What the runs of a workflow are given, as JSON schema: wrong input is refused where no agent code runs.
ALTER TABLE holdpoint.agents ADD COLUMN input_schema jsonb;
