import type { RunEvent } from "../src/event.ts";
import { type RunState, submitted } from "../src/state.ts";
import { isTerminal } from "../src/status.ts";
import { ALL_EVENTS, afterEvent, afterStep, canHappen, STEPS } from "./all-events.ts";

/** One thing that can happen to a run that exists. */
export interface Happening {
  readonly before: RunState;
  readonly by: RunEvent | null;
  readonly after: RunState;
}

/** Takeovers in `cancelling` have no limit; beyond this number nothing differs any more. */
const TAKEOVERS_TOLD_APART = 3;

/**
 * Everything that can happen to any run that can come about: all events and step effects, starting from a submitted
 * run, until nothing new appears. Complete for what the events of the list contain.
 */
export function exploreRuns(): readonly Happening[] {
  const seen = new Set<string>([JSON.stringify(submitted())]);
  const open: RunState[] = [submitted()];
  const happenings: Happening[] = [];
  for (let before = open.pop(); before !== undefined; before = open.pop()) {
    for (const happening of happeningsTo(before)) {
      happenings.push(happening);
      const key = JSON.stringify(happening.after);
      if (seen.has(key)) continue;
      seen.add(key);
      open.push(happening.after);
    }
  }
  return happenings;
}

function happeningsTo(before: RunState): readonly Happening[] {
  const by = ALL_EVENTS.filter((event) => canHappen(before, event)).map((event) => ({
    before,
    by: event,
    after: bounded(afterEvent(before, event)),
  }));
  if (isTerminal(before.status)) return by;
  const steps = STEPS.flatMap((step) => {
    const after = afterStep(before, step);
    return after === null ? [] : [{ before, by: null, after }];
  });
  return [...by, ...steps];
}

function bounded(run: RunState): RunState {
  return run.takeovers > TAKEOVERS_TOLD_APART ? { ...run, takeovers: TAKEOVERS_TOLD_APART } : run;
}
