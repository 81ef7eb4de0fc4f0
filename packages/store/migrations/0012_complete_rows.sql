-- What makes a row of runs complete is one constraint in place of nineteen. Postgres reads and prepares every constraint of a
-- table anew for each statement that changes a row of it, which was a quarter of what a batch of a few steps cost; a function is
-- prepared once for each connection. It names the rule that a row breaks as its constraint.
CREATE FUNCTION holdpoint.is_complete(r holdpoint.runs) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
declare broken text;
begin
  if r.status = 'running' then
    broken := case
      when r.owner is null or r.progress_due_at is null then 'running_is_complete'
      when r.ended_at is not null then 'ended_is_complete'
    end;
  else
    broken := case
      when r.status not in ('queued', 'waiting_input', 'waiting_approval', 'waiting_dependency', 'waiting_operator',
        'retrying', 'outcome_unknown', 'paused', 'lost', 'cancelling', 'completed', 'failed', 'cancelled')
        then 'status_is_known'
      when r.owner is not null and r.status not in ('outcome_unknown', 'cancelling') then 'owner_only_where_work_is'
      when (r.status in ('completed', 'failed', 'cancelled')) <> (r.ended_at is not null) then 'ended_is_complete'
      when r.status = 'completed' and r.outcome is null then 'completed_says_what'
      when r.ended_at is not null and (r.open_attempts <> 0 or r.live_children <> 0) then 'no_end_with_open_work'
      when r.status = 'queued' and (r.queued_since is null or r.wait_deadline is null) then 'queued_is_complete'
      when r.status like 'waiting\_%' and (r.waiting_for is null or r.waiting_since is null or r.wait_deadline is null
        or r.on_deadline is null or r.hold_seq is null) then 'waiting_is_complete'
      when r.status = 'waiting_operator' and r.waiting_for ->> 'reason' is null then 'operator_hold_says_why'
      when r.status = 'retrying' and r.retry_at is null then 'retrying_is_complete'
      when r.status = 'outcome_unknown' and (r.open_attempts <= 0 or r.next_reconcile_at is null
        or r.wait_deadline is null) then 'unknown_is_complete'
      when r.status = 'paused' and (r.paused_at is null or r.resume_to is null or r.wait_deadline is null)
        then 'paused_is_complete'
      when r.status = 'lost' and (r.lost_at is null or r.lost_reason is null or r.wait_deadline is null)
        then 'lost_is_complete'
      when r.status = 'cancelling' and (r.cancel_requested_at is null or r.wait_deadline is null)
        then 'cancelling_is_complete'
    end;
  end if;
  broken := coalesce(broken, case
    when r.open_attempts < 0 or r.live_children < 0 or r.takeovers < 0 or r.step_seq < 0 then 'counters_are_natural'
    when octet_length(r.checkpoint::text) > 2048 then 'checkpoint_is_small'
    when r.parent is null and (r.parent_call is not null or r.parent_ordinal is not null or r.parent_try is not null
      or cardinality(r.ancestors) <> 0) then 'child_names_its_call'
    when r.parent is not null and (r.parent_call is null or r.parent_ordinal is null or r.parent_try is null
      or cardinality(r.ancestors) = 0) then 'child_names_its_call'
    when r.parent is not null and r.ancestors[cardinality(r.ancestors)] <> r.parent then 'ancestors_end_at_the_parent'
    when r.told_parent_at is not null and (r.parent is null or r.ended_at is null) then 'told_after_its_end'
  end);
  if broken is not null then
    raise exception 'new row for relation "runs" violates check constraint "%"', broken
      using errcode = 'check_violation', schema = 'holdpoint', table = 'runs', constraint = broken;
  end if;
  return true;
end
$$;
--> statement-breakpoint
ALTER TABLE holdpoint.runs
  DROP CONSTRAINT status_is_known,
  DROP CONSTRAINT counters_are_natural,
  DROP CONSTRAINT owner_only_where_work_is,
  DROP CONSTRAINT queued_is_complete,
  DROP CONSTRAINT running_is_complete,
  DROP CONSTRAINT waiting_is_complete,
  DROP CONSTRAINT operator_hold_says_why,
  DROP CONSTRAINT retrying_is_complete,
  DROP CONSTRAINT unknown_is_complete,
  DROP CONSTRAINT paused_is_complete,
  DROP CONSTRAINT lost_is_complete,
  DROP CONSTRAINT cancelling_is_complete,
  DROP CONSTRAINT ended_is_complete,
  DROP CONSTRAINT completed_says_what,
  DROP CONSTRAINT no_end_with_open_work,
  DROP CONSTRAINT checkpoint_is_small,
  DROP CONSTRAINT child_names_its_call,
  DROP CONSTRAINT ancestors_end_at_the_parent,
  DROP CONSTRAINT told_after_its_end,
  ADD CONSTRAINT row_is_complete CHECK (holdpoint.is_complete(runs));
--> statement-breakpoint
-- What is said is appended like the histories: its session is there, since the statement that says it moves the session's
-- row; that none is without one is asked by an invariant query.
ALTER TABLE holdpoint.messages DROP CONSTRAINT messages_session_id_fkey;
