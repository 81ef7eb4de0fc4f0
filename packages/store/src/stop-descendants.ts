import type { Actor } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import type { Move } from "./move.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import { type Moved, sortResults, transition } from "./transition.ts";

/** Why a run was asked to stop by the one that started it. */
export type StopReason = "parent_cancelled" | "not_needed";

/** A run is asked to stop by its parent. */
export function stoppingMove(run: Run, reason: StopReason): Move {
  const actor: Actor = { kind: "parent", id: run.parent ?? "" };
  return { run, events: [{ type: "CancelRequested", reason }], actor, reason };
}

const LIMIT = 200;
const ROUNDS = 50;

/**
 * Asks everything below a run that is being stopped to stop as well, at every depth. What it does not reach, since this
 * process dies or somebody else moves a row, the sweep asks.
 */
export async function stopDescendants(store: Store, runId: string): Promise<Moved> {
  return stopAll(store, (limit) => execute<{ run: RunJson }>(store, BELOW, [store.tenantId, runId, limit]), {
    reason: "parent_cancelled",
  });
}

/** Asks single children to stop for which their parent does not wait any more. */
export async function stopChildren(
  store: Store,
  { parentId, childIds }: { readonly parentId: string; readonly childIds: readonly string[] },
): Promise<Moved> {
  return stopAll(
    store,
    (limit) => execute<{ run: RunJson }>(store, CHILDREN, [store.tenantId, parentId, childIds, limit]),
    { reason: "not_needed" },
  );
}

async function stopAll(
  store: Store,
  find: (limit: number) => Promise<readonly { run: RunJson }[]>,
  { reason }: { readonly reason: StopReason },
): Promise<Moved> {
  const moved: Run[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const rows = await find(LIMIT);
    if (rows.length === 0) break;
    const results = sortResults(
      await transition(
        store,
        rows.map(({ run }) => stoppingMove(runOf(run), reason)),
      ),
    );
    moved.push(...results.moved);
    if (results.errors.length > 0) return { moved, errors: results.errors };
  }
  return { moved, errors: [] };
}

const LIVE = "r.ended_at is null and r.cancel_requested_at is null";

const BELOW = statement(
  "find_below",
  `select to_jsonb(r) as run from holdpoint.runs top
   join holdpoint.runs r on r.parent is not null and r.ancestors[1] = coalesce(top.ancestors[1], top.id)
     and top.id = any(r.ancestors)
   where top.tenant_id = $1::uuid and top.id = $2::uuid and ${LIVE}
   order by r.id limit $3::int`,
);

const CHILDREN = statement(
  "find_children_to_stop",
  `select to_jsonb(r) as run from holdpoint.runs r
   where r.tenant_id = $1::uuid and r.parent = $2::uuid and r.id = any($3::uuid[]) and ${LIVE}
   order by r.id limit $4::int`,
);
