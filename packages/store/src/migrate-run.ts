import type { Actor } from "@holdpoint/core";
import { type ActResult, act } from "./act.ts";
import { findAgent } from "./agents.ts";
import type { Store } from "./db.ts";
import { findRow } from "./find-row.ts";
import { newId } from "./ids.ts";

export interface MigrationRequest {
  readonly runId: string;
  /** The version of its workflow in which the run is to go on. */
  readonly version: string;
  readonly actor: Actor;
}

/** No worker has registered the workflow in that version. */
export type VersionUnknown = { readonly result: "version_unknown" };

/**
 * Stores that an operator wants a workflow's run to go on in another version. Whoever works on it next checks whether what it
 * has done means the same there; until then, and if it does not, it stays with its own.
 */
export function requestMigration(store: Store, request: MigrationRequest): Promise<ActResult<VersionUnknown>> {
  const { runId, version, actor } = request;
  const read = async (_store: Store, id: string) => {
    const run = await findRow(store, id);
    if (run === null) return null;
    const [now, then] = await Promise.all([
      findAgent(store, run.agent),
      findAgent(store, { name: run.agent.name, version }),
    ]);
    return { run, isWorkflow: now?.kind === "workflow", isKnown: then?.kind === "workflow" };
  };
  return act<NonNullable<Awaited<ReturnType<typeof read>>>, VersionUnknown>(
    store,
    { runId, event: "FactArrived", actor, read },
    ({ run, isWorkflow, isKnown }) => {
      if (!isWorkflow) return { refuse: "not_a_workflow" };
      if (!isKnown) return { answer: { result: "version_unknown" } };
      return {
        run,
        events: [{ type: "FactArrived", fact: "message", completesHold: false }],
        actor,
        reason: `migration to ${version}`,
        writes: { facts: [{ id: newId(), body: { kind: "migration", version, by: actor.id } }] },
      };
    },
  );
}
