import { type Store, statement } from "../db.ts";
import { execute } from "../execute.ts";
import type { AttemptView } from "./attempt-view.ts";

/** More tries than this of one call are a fault somewhere; a page shows no more of them. */
const MAX_TRIES = 100;

/** The tries of reads by their calls, in order. They stand in the steps that store how they ended. */
export async function triesOfReads(
  store: Store,
  runId: string,
  callIds: readonly string[],
): Promise<ReadonlyMap<string, readonly AttemptView[]>> {
  if (callIds.length === 0) return new Map();
  const values = [store.tenantId, runId, callIds, callIds.length * MAX_TRIES];
  const rows = await execute<TryRow>(store, TRIES, values);
  return new Map([...Map.groupBy(rows, ({ call_id }) => call_id)].map(([id, tries]) => [id, tries.map(viewOf)]));
}

interface TryRow {
  readonly call_id: string;
  readonly number: number;
  readonly worker: string;
  readonly ended_at: Date;
  readonly duration_ms: number;
  readonly error_class: string | null;
  readonly error_code: string | null;
}

function viewOf({ number, worker, ended_at: endedAt, duration_ms: durationMs, ...error }: TryRow): AttemptView {
  const endedAtMs = endedAt.getTime();
  return {
    id: null,
    number,
    workerId: worker,
    externalRef: null,
    startedAtMs: endedAtMs - durationMs,
    deadlineAtMs: endedAtMs,
    endedAtMs,
    outcome: error.error_code === null ? "succeeded" : "failed",
    settledBy: `worker:${worker}`,
    errorClass: error.error_class,
    errorCode: error.error_code,
    lookUps: 0,
    lateAtMs: null,
  };
}

/** A step tells of a try by how long that took; who made it is who had claimed the run under its epoch. */
const TRIES = statement(
  "tries_of_reads",
  `select s.body->>'callId' as call_id, (s.body->>'attempt')::int as number, t.actor_id as worker, s.at as ended_at,
     (s.body->>'durationMs')::float8 as duration_ms, s.body->>'errorClass' as error_class, s.body->>'code' as error_code
   from holdpoint.steps s
   join holdpoint.transitions t on t.run_id = s.run_id and t.epoch = s.epoch and t.event = 'Claimed'
   where s.tenant_id = $1::uuid and s.run_id = $2::uuid and s.kind in ('tool_result', 'call_failed')
     and s.body ? 'durationMs' and s.body->>'callId' = any($3::text[])
   order by s.seq limit $4::int`,
);
