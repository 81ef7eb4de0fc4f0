import {
  type Actor,
  type ChildrenProperties,
  type EffectProperties,
  familyOf,
  presentHold,
  type Step,
  wakesParent,
} from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type ChildJson, childOf, childrenOf } from "./load-run.ts";
import type { Move } from "./move.ts";
import { type Run, type RunJson, runOf } from "./run.ts";
import { type Moved, sortResults, transition } from "./transition.ts";

/** A parent with children that have ended and are not counted yet, and what it waits for. */
export interface UntoldParent {
  readonly run: Run;
  readonly untold: readonly string[];
  /** Of the call that it waits for. */
  readonly effect: ChildrenProperties | null;
  readonly start: Step | null;
  readonly children: readonly ChildJson[];
}

/** Parents of which children have ended and are not counted yet; of these children's only, if any are named. */
export async function findUntoldParents(
  store: Store,
  { limit, childIds = null }: { readonly limit: number; readonly childIds?: readonly string[] | null },
): Promise<readonly UntoldParent[]> {
  const rows = await execute<UntoldRow>(store, UNTOLD, [store.tenantId, limit, childIds]);
  return rows.map((row) => ({
    run: runOf(row.run),
    untold: row.untold,
    effect: row.effect?.kind === "children" ? row.effect : null,
    start: row.start,
    children: row.children,
  }));
}

/** Counts the ends of children on their parent's row, each once: the version pins which were not counted yet. */
export function tellingMove(parent: UntoldParent): Omit<Move, "actor"> {
  const told = new Set(parent.untold);
  const { start, effect } = parent;
  const hold = presentHold(parent.run.state);
  const callId = hold?.waitingFor.subject ?? null;
  const children = parent.children.map((child) => childOf(told.has(child.id) ? { ...child, ended: true } : child));
  const family = start === null || callId === null ? null : familyOf({ steps: [start], children }, callId);
  const liveChildren = parent.run.state.liveChildren - parent.untold.length;
  const wakes = wakesParent(hold, { effect, family, liveChildren });
  const last = parent.untold.length - 1;
  return {
    run: parent.run,
    events: parent.untold.map((_, index) => ({
      type: "FactArrived",
      fact: "child",
      completesHold: wakes && index === last,
    })),
    reason: "child_ended",
    writes: { toldChildren: parent.untold },
  };
}

const TRIES = 5;

/** Tells the parents of these runs, which have ended; what somebody else moves meanwhile is left to the sweep. */
export async function tellParents(store: Store, childIds: readonly string[], actor: Actor): Promise<Moved> {
  const moved: Run[] = [];
  for (let tries = 0; tries < TRIES; tries += 1) {
    const parents = await findUntoldParents(store, { limit: childIds.length, childIds });
    if (parents.length === 0) return { moved, errors: [] };
    const results = sortResults(
      await transition(
        store,
        parents.map((parent) => ({ ...tellingMove(parent), actor })),
      ),
    );
    moved.push(...results.moved);
    if (results.errors.length > 0) return { moved, errors: results.errors };
  }
  return { moved, errors: [] };
}

interface UntoldRow {
  readonly run: RunJson;
  readonly untold: readonly string[];
  readonly effect: EffectProperties | null;
  readonly start: Step | null;
  readonly children: readonly ChildJson[];
}

/** The call that the parent `r` waits for, or would wait for but for a pause. */
const AWAITED = "coalesce(r.waiting_for, r.resume_to->'hold'->'waitingFor')->>'subject'";

const UNTOLD = statement(
  "find_untold_parents",
  `
with untold as (
  select k.parent, jsonb_agg(k.id order by k.id) as ids from (
    select parent, id from holdpoint.runs
    where tenant_id = $1::uuid and parent is not null and ended_at is not null and told_parent_at is null
      and ($3::uuid[] is null or id = any($3::uuid[]))
    order by parent limit 50 * $2::int) k
  group by k.parent order by k.parent limit $2::int
)
select to_jsonb(r) as run, u.ids as untold, c.effect,
  (select jsonb_build_object('seq', s.seq, 'atMs', 0, 'body', s.body) from holdpoint.steps s
   where s.run_id = r.id and s.kind = 'children_started' and s.body->>'callId' = c.id::text
   order by s.seq desc limit 1) as start,
  ${childrenOf("k.parent = r.id and k.parent_call = c.id")} as children
from untold u join holdpoint.runs r on r.id = u.parent and r.tenant_id = $1::uuid
left join holdpoint.calls c on c.run_id = r.id and c.id::text = ${AWAITED}
where r.ended_at is null
order by r.id`,
);
