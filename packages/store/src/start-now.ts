import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import { actOnSchedule } from "./schedule.ts";
import { CAUSES, LINES, locked, STARTED, slotValues } from "./slot-statement.ts";
import { runByKey, type Submission } from "./submit-run.ts";

/** Runs of one schedule that have not ended, beyond which nobody starts another by hand. */
const MOST_LIVE_RUNS = 20;

export type StartNowResult =
  | { readonly result: "started"; readonly run: Run }
  /** The same request came before under the same key: its run, as it is now. */
  | { readonly result: "repeated"; readonly run: Run }
  /** The same; its run is past its retention, and does not run again. */
  | { readonly result: "removed"; readonly runId: string; readonly removedAtMs: number }
  | { readonly result: "key_reused" }
  | { readonly result: "too_many_live" }
  | { readonly result: "not_found" }
  /** The schedule kept changing while this was tried. */
  | { readonly result: "busy" };

/**
 * Starts a run of a schedule at once, whatever its other runs do and although it is paused: a person has said so. It is a
 * slot of its own, marked as manual; the next slot is where it was.
 */
export function startNow(
  store: Store,
  { name, by, idempotency }: { readonly name: string; readonly by: string } & Pick<Submission, "idempotency">,
): Promise<StartNowResult> {
  const keyed = idempotency === undefined ? {} : { idempotency };
  return actOnSchedule(store, name, async ({ schedule }): Promise<StartNowResult | null> => {
    const known = await runByKey(store, keyed);
    if (known !== null) return known;
    try {
      const [row] = await execute<{ run: RunJson | null; locked: boolean }>(store, START, [
        ...slotValues(store, schedule),
        by,
        MOST_LIVE_RUNS,
        idempotency?.principal ?? null,
        idempotency?.key ?? null,
        idempotency?.requestHash ?? null,
      ]);
      if (row?.run != null) return { result: "started", run: runOf(row.run) };
      return row?.locked === true ? { result: "too_many_live" } : null;
    } catch (error) {
      const constraint = constraintOf(error);
      // The same request in flight twice; or two people in one millisecond, the other of whom has that slot.
      if (constraint === "idempotency_keys_pkey" || constraint === "schedule_slots_pkey") return null;
      throw error;
    }
  });
}

const START = statement(
  "start_schedule_now",
  `with ${locked("true")},
starting as materialized (
  select s.*, at.at as slot_at, $8::text as submitted_by, 'operator' as actor_kind, 'started by hand' as note
  from schedule s cross join at where (select count(*) from live) < $9::int
),
${STARTED},
slotted as (
  insert into holdpoint.schedule_slots (tenant_id, schedule_id, slot_at, manual, state, run_id, session_id, causes,
    started_by, at)
  select $1::uuid, s.id, s.slot_at, true, 'started', $4::uuid, $5::uuid, ${CAUSES}, $8, at.at
  from starting s cross join at
),
keyed as (
  insert into holdpoint.idempotency_keys (tenant_id, principal, key, request_hash, run_id, created_at)
  select $1::uuid, $10, $11, $12, r.id, r.created_at from submitted r where $11::text is not null
),
advanced as (
  update holdpoint.schedules s set version = s.version + 1, lines = ${LINES} from starting k where s.id = k.id
)
select (select to_jsonb(r) from submitted r) as run, exists (select from schedule) as locked`,
);
