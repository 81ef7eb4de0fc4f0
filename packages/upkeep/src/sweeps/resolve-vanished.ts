import type { RunEvent } from "@holdpoint/core";
import {
  findVanished,
  lostRecords,
  recordVerdicts,
  sortResults,
  transition,
  type VanishedChildren,
} from "@holdpoint/store";
import { NOTHING, roundSweep, wake } from "../sweep.ts";

const NAME = "resolve-vanished";

/**
 * Parents that count on children whose rows are not there any more: those are counted as ended, so that the parent can
 * end at all, and a parent that waits for children asks an operator. It is not started anew by itself: nobody knows what
 * the vanished child had done outside, and another in its place might do it again.
 */
export const resolveVanished = roundSweep(NAME, async ({ store, publisher, id, limit }, look) => {
  const { found: vanished } = await look((part) => findVanished(store, { limit, part }));
  return {
    actions: vanished.map(({ run }) => ({ kind: NAME, runId: run.id, subject: null })),
    unreadable: [],
    carryOut: async () => {
      if (vanished.length === 0) return NOTHING;
      const moves = vanished.map((found) => ({
        run: found.run,
        events: eventsOf(found),
        actor: { kind: "sweeper", id } as const,
        reason: "backing_missing",
      }));
      const { moved, errors } = sortResults(await transition(store, moves, { skipLocked: true }));
      await recordVerdicts(store, lostRecords(moved, vanished.map(lossOf)));
      await wake(publisher, moved);
      return { found: vanished.length, moved: moved.length, errors };
    },
  };
});

/** A row that is gone brings nothing home: it completes no hold. */
function eventsOf({ run, missing }: VanishedChildren): readonly RunEvent[] {
  const ended = Array.from(
    { length: missing },
    (): RunEvent => ({
      type: "FactArrived",
      fact: "child",
      completesHold: false,
    }),
  );
  const { status, waitingFor } = run.state;
  if (status !== "waiting_dependency" || waitingFor?.kind !== "child") return ended;
  return [...ended, { type: "DeadlinePassed", remaining: null, onDeadline: "operator", because: "backing_missing" }];
}

function lossOf({ run, missing }: VanishedChildren) {
  const { liveChildren, waitingFor } = run.state;
  return {
    run,
    reason: "backing_missing",
    evidence: { missing, liveChildren, call: waitingFor?.subject ?? null },
  } as const;
}
