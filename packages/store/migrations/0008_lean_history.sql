-- A call's place in its turn is unique by the fence of the step that made it: every index costs each call its entry, and
-- an invariant query looks for the fault that this one would have refused.
ALTER TABLE holdpoint.calls DROP CONSTRAINT calls_run_id_turn_ordinal_key;
--> statement-breakpoint
-- By operation id only effects are looked for: a read's id is sent as well, and nothing is ever asked about it.
DROP INDEX holdpoint.calls_operation;
--> statement-breakpoint
CREATE INDEX calls_operation ON holdpoint.calls (operation_id) WHERE effect ->> 'kind' <> 'read';
--> statement-breakpoint
-- A checkpoint says how many calls are open. Their ids stood in every step's update of the row, and nobody read them.
UPDATE holdpoint.runs SET checkpoint = jsonb_set(checkpoint, '{openCalls}', to_jsonb(jsonb_array_length(checkpoint->'openCalls')))
  WHERE jsonb_typeof(checkpoint->'openCalls') = 'array' AND ended_at IS NULL;
