import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** What is left of a run that was removed. */
export interface Tombstone {
  readonly runId: string;
  readonly line: string;
  readonly parent: string | null;
  readonly agent: { readonly name: string; readonly version: string };
  readonly requester: string;
  readonly status: "completed" | "failed" | "cancelled";
  /** What was achieved, of a completed one. */
  readonly outcome: string | null;
  readonly endedAtMs: number;
  readonly removedAtMs: number;
  readonly effects: readonly BuriedEffect[];
}

/** An effect of a run that was removed, by its last attempt. */
export interface BuriedEffect {
  readonly operationId: string;
  readonly externalRef: string | null;
  readonly tool: string;
  readonly service: string | null;
  readonly outcome: string | null;
  readonly at: string;
  /** When the other side said that it has failed after all, the run being removed by then; null: it has not. */
  readonly failedAt: string | null;
}

/** By what a removed run is looked for; one of these. */
export type TombstoneKey =
  | { readonly runId: string }
  | { readonly operationId: string }
  | { readonly externalRef: string };

const LIMIT = 50;

/** The removed runs of this id, or with this effect; the one that was removed last first, at most 50. */
export async function findTombstones(store: Store, key: TombstoneKey): Promise<readonly Tombstone[]> {
  const effect = "runId" in key ? null : JSON.stringify([key]);
  const rows = await execute<TombstoneRow>(store, FIND, [
    store.tenantId,
    "runId" in key ? key.runId : null,
    effect,
    LIMIT,
  ]);
  return rows.map(tombstoneOf);
}

interface TombstoneRow {
  readonly run_id: string;
  readonly line: string;
  readonly parent: string | null;
  readonly agent_name: string;
  readonly agent_version: string;
  readonly requester: string;
  readonly status: Tombstone["status"];
  readonly outcome: string | null;
  readonly ended_at: string;
  readonly removed_at: string;
  readonly effects: readonly BuriedEffect[];
}

/** A tombstone as `to_jsonb` gives its row. */
function tombstoneOf(row: TombstoneRow): Tombstone {
  return {
    runId: row.run_id,
    line: row.line,
    parent: row.parent,
    agent: { name: row.agent_name, version: row.agent_version },
    requester: row.requester,
    status: row.status,
    outcome: row.outcome,
    endedAtMs: Date.parse(row.ended_at),
    removedAtMs: Date.parse(row.removed_at),
    effects: row.effects,
  };
}

const FIND = statement(
  "find_tombstones",
  `select t.run_id, t.line, t.parent, t.agent_name, t.agent_version, t.requester, t.status, t.outcome,
     to_jsonb(t.ended_at) #>> '{}' as ended_at, to_jsonb(t.removed_at) #>> '{}' as removed_at, t.effects
   from holdpoint.tombstones t
   where t.tenant_id = $1::uuid and (t.run_id = $2::uuid or (t.effects <> '[]' and t.effects @> $3::jsonb))
   order by t.removed_at desc, t.run_id limit $4::int`,
);
