-- A row of its own is needed by a call that something else may refer to: an effect, a call of child runs, a timer, what a person
-- has to release. A read stands in the step of the reply that asked for it, at its place among the step's callIds; null where
-- the call has a row.
-- Each is a list: the model's name for it, the tool, the arguments as canonical JSON, and where it is not as most calls are, an
-- object with what is different. What most calls are is said here and in the store's reply-calls.ts, and may not change.
ALTER TABLE holdpoint.steps ADD COLUMN calls jsonb;
--> statement-breakpoint
-- An id as people see it: a TypeID, 26 characters of five bits each.
CREATE FUNCTION holdpoint.shown_id(prefix text, id uuid) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  select prefix || '_' || string_agg(
    substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(b.bits from 1 + 5 * n for 5)::bit(5)::int, 1), '' order by n)
  from (select B'00' || ('x' || replace(id::text, '-', ''))::bit(128)) as b(bits), generate_series(0, 25) as n
$$;
--> statement-breakpoint
-- Every call, wherever it stands.
CREATE VIEW holdpoint.all_calls AS
  SELECT tenant_id, run_id, id, turn, ordinal, tool_call_id, tool, args, args_hash, operation_id, effect, verdict, timeout_ms,
    retries, at, service, throttled_for_ms
  FROM holdpoint.calls
  UNION ALL
  SELECT s.tenant_id, s.run_id, i.id, (s.body ->> 'turn')::int, coalesce((c.call -> 3 ->> 'ordinal')::int, c.place::int - 1),
    c.call ->> 0, c.call ->> 1, c.call ->> 2,
    encode(sha256(convert_to('{"args":' || (c.call ->> 2) || ',"tool":' || (c.call -> 1)::text || ',"v":1}', 'UTF8')), 'hex'),
    coalesce(c.call -> 3 ->> 'operationId', holdpoint.shown_id('op', i.id)),
    '{"kind": "read"}'::jsonb, coalesce(c.call -> 3 -> 'verdict', '{"kind": "allowed"}'),
    coalesce((c.call -> 3 ->> 'timeoutMs')::int, 30000), coalesce((c.call -> 3 ->> 'retries')::int, 1), s.at,
    coalesce(c.call -> 3 ->> 'service', 'tool:' || (c.call ->> 1)),
    coalesce((c.call -> 3 ->> 'throttledForMs')::bigint, 172800000)
  FROM holdpoint.steps s
  CROSS JOIN LATERAL jsonb_array_elements(s.calls) WITH ORDINALITY AS c(call, place)
  CROSS JOIN LATERAL (SELECT (s.body -> 'callIds' ->> (c.place::int - 1))::uuid) AS i(id)
  WHERE s.calls IS NOT NULL AND c.call <> 'null';
