import { findLeftovers, removeLeftovers } from "@holdpoint/store";
import { type Action, plannedSweep, type Subject } from "../sweep.ts";

/** Most of each kind that one pass removes. */
const AT_ONCE = 100;

const NAME = "remove-leftovers";

/** Sessions without runs, artifacts that no run refers to, tombstones past their time. */
export const removeLeftoversOfRuns = plannedSweep(NAME, async ({ store, limit }) => {
  const atOnce = Math.min(limit, AT_ONCE);
  const { sessionIds, artifacts, tombstones } = await findLeftovers(store, atOnce);
  const action = (kind: Subject["kind"], id: string): Action => ({ kind: NAME, runId: null, subject: { kind, id } });
  const actions = [
    ...sessionIds.map((id) => action("session", id)),
    ...artifacts.map((sha256) => action("artifact", sha256)),
    ...tombstones.map((id) => action("tombstone", id)),
  ];
  return {
    actions,
    unreadable: [],
    carryOut: async () => {
      const gone = await removeLeftovers(store, atOnce);
      const counts = {
        sessions: gone.sessionIds.length,
        artifacts: gone.artifacts.length,
        tombstones: gone.tombstones.length,
      };
      const moved = counts.sessions + counts.artifacts + counts.tombstones;
      // What was left since it looked goes with the rest.
      return { found: Math.max(actions.length, moved), moved, errors: [], counts };
    },
  };
});
