import type { Actor, EventType } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { newId } from "./ids.ts";

export interface Refusal {
  readonly runId: string;
  readonly event: EventType;
  readonly rule: string;
  readonly status: string;
  readonly actor: Actor;
  /** The same within this time, in milliseconds, is no further entry. */
  readonly onceInMs?: number;
}

/** Stores the final refused answer to somebody outside: a late approval, a double click, a stale worker. Nothing of a run that was removed. */
export async function recordRefusal(store: Store, refusal: Refusal): Promise<void> {
  const { runId, event, rule, status, actor, onceInMs = null } = refusal;
  const values = [store.tenantId, newId(), runId, event, rule, status, actor.kind, actor.id, onceInMs];
  await execute(store, RECORD, values);
}

const RECORD = statement(
  "record_refusal",
  `insert into holdpoint.refusals (tenant_id, id, run_id, event, rule, status, actor_kind, actor_id, at)
   select $1::uuid, $2::uuid, r.id, $4, $5, $6, $7, $8, holdpoint.clock()
   from holdpoint.runs r where r.tenant_id = $1::uuid and r.id = $3::uuid
     and ($9::float8 is null or not exists (select from holdpoint.refusals f where f.run_id = r.id and f.event = $4
       and f.rule = $5 and f.actor_id = $8 and f.at > holdpoint.clock() - $9::float8 * interval '1 millisecond'))
   for key share`,
);
