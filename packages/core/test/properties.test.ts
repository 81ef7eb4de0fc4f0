import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mayRaise, type RunEvent } from "../src/event.ts";
import { reduce } from "../src/reduce.ts";
import { type RunState, submitted } from "../src/state.ts";
import { isTerminal, STATUSES } from "../src/status.ts";
import { ALL_EVENTS, afterEvent, afterStep, canHappen, factArrived, STEPS, type StepEffect } from "./all-events.ts";
import { exploreRuns } from "./reachable-runs.ts";
import { violations } from "./violations.ts";

type Act = { readonly event: RunEvent } | { readonly step: StepEffect };

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ALL_EVENTS).map((event) => ({ event })) },
  { weight: 1, arbitrary: fc.constantFrom(...STEPS).map((step) => ({ step })) },
);
const acts = fc.array(act, { maxLength: 60 });

/** The run after one act; the same where it cannot happen to this run. */
function after(run: RunState, act: Act): RunState {
  if ("step" in act) return isTerminal(run.status) ? run : (afterStep(run, act.step) ?? run);
  return canHappen(run, act.event) ? afterEvent(run, act.event) : run;
}

const happenings = exploreRuns();
const runs = [...new Map(happenings.map(({ before }) => [JSON.stringify(before), before])).values()];

/** Events that need no worker: what the sweeper finds due, and what people may send through the api. */
const WITHOUT_WORKERS: readonly RunEvent[] = ALL_EVENTS.filter((event) =>
  (["sweeper", "requester", "operator"] as const).some((kind) => mayRaise(event, kind)),
).filter((event) => event.type !== "OwnerGone");

describe("every run", () => {
  test("keeps the constraints of its table, whatever happens to it", () => {
    fc.assert(
      fc.property(acts, (sequence) => {
        let run = submitted();
        for (const each of sequence) {
          run = after(run, each);
          expect(violations(run)).toEqual([]);
        }
      }),
    );
  });

  test("that has ended stays as it is, whatever comes", () => {
    fc.assert(
      fc.property(fc.constantFrom(...runs.filter(({ status }) => isTerminal(status))), acts, (ended, sequence) => {
        expect(sequence.reduce(after, ended)).toEqual(ended);
      }),
    );
  });

  test("that ends has no open attempt and no live child", () => {
    fc.assert(
      fc.property(acts, (sequence) => {
        const ended = sequence.reduce(after, submitted());
        fc.pre(isTerminal(ended.status));
        expect(ended).toMatchObject({ openAttempts: 0, liveChildren: 0, owner: null });
      }),
    );
  });
});

describe("all runs that can come about", () => {
  test("are of every status, and keep the constraints of their table", () => {
    expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(STATUSES));
    const broken = happenings.filter(({ after: run }) => violations(run).length > 0);
    expect(
      broken.slice(0, 3).map(({ before, by, after: run }) => ({ before, by, violations: violations(run) })),
    ).toEqual([]);
  });

  test("stay as they are after the end", () => {
    const left = happenings.filter(({ before, after: run }) => isTerminal(before.status) && run !== before);
    expect(left).toEqual([]);
    expect(runs.filter(({ status }) => isTerminal(status)).length).toBeGreaterThan(3);
  });

  test("wait for an operator with an open attempt only when nobody looks it up any more", () => {
    const forgotten = runs.filter(
      (run) => run.status === "waiting_operator" && run.openAttempts > 0 && !run.lookUpsOver,
    );
    expect(forgotten).toEqual([]);
  });

  test("can end by what the sweeper and people do, in at most three of their acts and the ends of their children", () => {
    const stuck = runs.filter((run) => !isTerminal(run.status) && !canEnd(withoutChildren(run), 3));
    expect(stuck.slice(0, 3)).toEqual([]);
  });

  test("count one live child less with each end of a child, and none with anything else but its start", () => {
    const counted = happenings.map(({ before, by, after: run }) => ({
      isEnd: by?.type === "FactArrived" && by.fact === "child",
      isEvent: by !== null,
      change: run.liveChildren - before.liveChildren,
    }));
    expect(counted.filter(({ isEnd }) => isEnd).every(({ change }) => change === -1)).toBe(true);
    expect(counted.filter(({ isEnd, isEvent }) => isEvent && !isEnd).every(({ change }) => change === 0)).toBe(true);
    expect(counted.filter(({ isEnd }) => isEnd).length).toBeGreaterThan(10);
  });

  test("of every status but the ends are moved by somebody other than their owner", () => {
    const moved = new Set(
      happenings.flatMap(({ before, by, after: run }) =>
        by !== null && WITHOUT_WORKERS.includes(by) && run.status !== before.status ? [before.status] : [],
      ),
    );
    expect(STATUSES.filter((status) => !moved.has(status))).toEqual(["completed", "failed", "cancelled"]);
  });
});

/** The run after its children have ended, each told by somebody who knows of nothing that it wakes. */
function withoutChildren(run: RunState): RunState {
  const ends = Array.from({ length: run.liveChildren }, () => factArrived("child", false));
  return ends.reduce(afterEvent, run);
}

function canEnd(run: RunState, acts: number): boolean {
  if (isTerminal(run.status)) return true;
  if (acts === 0) return false;
  return WITHOUT_WORKERS.filter((event) => canHappen(run, event))
    .map((event) => afterEvent(run, event))
    .some((next) => next !== run && canEnd(next, acts - 1));
}

describe("reduce", () => {
  test("never changes the run it is given", () => {
    const pick = fc.constantFrom(...runs);
    fc.assert(
      fc.property(pick, fc.constantFrom(...ALL_EVENTS), (run, event) => {
        const before = JSON.stringify(run);
        for (const kind of ["worker", "operator", "sweeper", "requester"] as const)
          reduce(run, event, { kind, id: "x" });
        expect(JSON.stringify(run)).toBe(before);
      }),
    );
  });
});
