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
}

/** Stores the final refused answer to somebody outside: a late approval, a double click, a stale worker. */
export async function recordRefusal(store: Store, refusal: Refusal): Promise<void> {
  const { runId, event, rule, status, actor } = refusal;
  await execute(store, RECORD, [store.tenantId, newId(), runId, event, rule, status, actor.kind, actor.id]);
}

const RECORD = statement(
  "record_refusal",
  `insert into holdpoint.refusals (tenant_id, id, run_id, event, rule, status, actor_kind, actor_id, at)
   values ($1::uuid, $2::uuid, $3::uuid, $4, $5, $6, $7, $8, holdpoint.clock())`,
);
