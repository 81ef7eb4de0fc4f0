import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { presentHold } from "../src/rest.ts";
import { isTerminal } from "../src/status.ts";
import type { Child, ResultKind, StepBody } from "../src/step.ts";
import { childRuns } from "./builders.ts";
import { ACTS, type ActName, aWorld, type Settings, type World, waitsAsBefore, wakes } from "./children-model.ts";
import { violations } from "./violations.ts";

const settings: fc.Arbitrary<Settings> = fc.record({
  effect: fc
    .record({
      wait: fc.constantFrom("all" as const, 1, 2, 3),
      atOnce: fc.integer({ min: 1, max: 5 }),
      onBlocked: fc.constantFrom("operator" as const, "tell" as const),
    })
    .map(childRuns),
  total: fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 9, arbitrary: fc.integer({ min: 1, max: 5 }) }),
  isGated: fc.boolean(),
  mayVanish: fc.boolean(),
});

/** Who is there does what there is to do; with the first pick an operator passes over whatever is shown to them. */
const WORK: readonly ActName[] = [
  "claim",
  "store",
  "think",
  "approve",
  "operate",
  "endChild",
  "tell",
  "resume",
  "allow",
];

/** Each as often as it shall be tried; where it cannot happen, the work goes on. */
const TRIED: readonly ActName[] = [
  ...(["store", "store", "store", "store", "endChild", "tell", "endChild", "tell", "endChild", "tell"] as const),
  ...(["store", "store", "store", "store", "claim", "operate", "approve", "resume", "allow", "vanish"] as const),
  ...(["store", "store", "store", "store", "crash", "pause", "passDeadline", "lapse", "forbid", "resume"] as const),
];

/** What is tried, and with which of several things. */
type Choice = readonly [number, number];

// Long ones as often as short ones: a try after a try takes some thirty acts.
const choice = fc.noBias(fc.tuple(fc.nat({ max: TRIED.length - 1 }), fc.nat({ max: 1_000 })));
const choices: fc.Arbitrary<readonly Choice[]> = fc.array(choice, { maxLength: 100, size: "max" });

/** The first world that one of these acts makes of another; null if none of them can happen. */
function first(world: World, names: readonly ActName[], pick: number): World | null {
  for (const name of names) {
    const next = ACTS[name](world, pick);
    if (next !== null && next !== world) return next;
  }
  return null;
}

function happen(world: World, [tried, pick]: Choice): World {
  return first(world, [...TRIED.slice(tried, tried + 1), ...WORK], pick) ?? world;
}

/** All worlds on the way. */
function history(from: World, sequence: readonly Choice[]): readonly World[] {
  const worlds: World[] = [from];
  for (const choice of sequence) worlds.push(happen(last(worlds), choice));
  return worlds;
}

const ENOUGH = 300;

function toTheEnd(from: World): readonly World[] {
  const worlds: World[] = [from];
  while (worlds.length < ENOUGH) {
    const next = first(last(worlds), WORK, 0);
    if (next === null) break;
    worlds.push(next);
  }
  return worlds;
}

function last(worlds: readonly World[]): World {
  const world = worlds.at(-1);
  if (world === undefined) throw new Error("There is no world");
  return world;
}

type Body<Kind extends StepBody["kind"]> = Extract<StepBody, { kind: Kind }>;

function bodies<Kind extends StepBody["kind"]>({ steps }: World, kind: Kind): readonly Body<Kind>[] {
  return steps.map(({ body }) => body).filter((body): body is Body<Kind> => body.kind === kind);
}

function latest({ children }: World): readonly Child[] {
  return children.filter(
    (child) => !children.some((other) => other.ordinal === child.ordinal && other.try > child.try),
  );
}

function hasSucceeded({ status, outcome }: Child): boolean {
  return status === "completed" && outcome?.kind === "succeeded";
}

/** What is wrong with a world, in words. */
function wrongs(world: World): readonly string[] {
  const { run, children, settings: given } = world;
  const live = children.filter(({ ended }) => !ended).length;
  const started = bodies(world, "children_started").flatMap((body) => body.ordinals.map((at) => `${at}/${body.try}`));
  const results = bodies(world, "tool_result");
  const isStopping = children.every(({ status, stopRequested }) => isTerminal(status) || stopRequested);
  const { atOnce } = given.effect;
  return [
    ...violations(run),
    ...(live === run.liveChildren ? [] : [`${live} children live, ${run.liveChildren} are counted`]),
    ...(live <= atOnce ? [] : [`${live} live at once, ${atOnce} may`]),
    ...(new Set(started).size === started.length ? [] : [`started twice: ${started}`]),
    ...(results.length <= 1 ? [] : ["more than one result"]),
    ...(results.length === 0 || isStopping ? [] : ["a child goes on for which nobody waits"]),
    ...(isTerminal(run.status) && run.liveChildren > 0 ? ["an end with live children"] : []),
  ];
}

describe("a run whose call starts children", () => {
  test("keeps its limits and its counts at every moment, whatever happens in whichever order", () => {
    fc.assert(
      fc.property(settings, choices, (given, sequence) => {
        for (const world of history(aWorld(given), sequence)) expect(wrongs(world)).toEqual([]);
      }),
    );
  });

  test("is never asleep with something to do", () => {
    fc.assert(
      fc.property(settings, choices, (given, sequence) => {
        for (const world of history(aWorld(given), sequence)) {
          const hold = presentHold(world.run);
          if (hold?.waitingFor.kind !== "child") continue;
          expect({ wakes: wakes(world, hold), waits: waitsAsBefore(world, hold) }).toEqual({
            wakes: false,
            waits: true,
          });
        }
      }),
    );
  });

  test("is woken by the end of a child exactly when planning anew would do something else than wait", () => {
    fc.assert(
      fc.property(settings, choices, (given, sequence) => {
        for (const { wakes: isWoken, wakesByAll, hasToAct } of last(history(aWorld(given), sequence)).tellings) {
          expect(wakesByAll).toBe(hasToAct);
          // Whoever tells knows the last start only: where rows are gone that may wake for nothing, but never the reverse.
          expect(isWoken).toBe(hasToAct || (given.mayVanish && isWoken));
        }
      }),
    );
  });

  test("ends, with one result and no live child, from wherever it stands", () => {
    fc.assert(
      fc.property(settings, choices, (given, sequence) => {
        const worlds = toTheEnd(last(history(aWorld(given), sequence)));
        for (const world of worlds) expect(wrongs(world)).toEqual([]);
        const ended = last(worlds);
        expect(ended.run).toMatchObject({ status: "completed", liveChildren: 0, owner: null });
        expect(bodies(ended, "tool_result")).toHaveLength(1);
      }),
    );
  });

  test("that is asked to stop starts nothing more, and has stopped when its children have", () => {
    fc.assert(
      fc.property(settings, choices, choices, (given, before, after) => {
        const asked = ACTS.cancel(last(history(aWorld(given), before)));
        fc.pre(asked !== null);
        const later = last(history(asked, after));
        const worlds = toTheEnd(later);
        expect(bodies(last(worlds), "children_started")).toEqual(bodies(asked, "children_started"));
        expect(last(worlds).run).toMatchObject({ status: "cancelled", liveChildren: 0, owner: null });
        for (const world of worlds) expect(wrongs(world)).toEqual([]);
      }),
    );
  });
});

/** The result of the call, and the world as its owner saw it when it planned that. */
function atResult(worlds: readonly World[]): { readonly world: World; readonly result: ResultKind } | null {
  const at = worlds.findIndex((each) => bodies(each, "tool_result").length > 0);
  const [written] = worlds.slice(at).flatMap((each) => bodies(each, "tool_result"));
  const world = worlds
    .slice(0, Math.max(0, at))
    .findLast(({ planned }, index) => planned !== worlds[index - 1]?.planned);
  return world === undefined || written === undefined ? null : { world, result: written.result };
}

describe("the result of a call with children", () => {
  const results = (given: Settings, sequence: readonly Choice[]) => {
    const worlds = history(aWorld(given), sequence);
    return atResult([...worlds, ...toTheEnd(last(worlds))]);
  };

  test("says that it succeeded exactly where enough of them have", () => {
    fc.assert(
      fc.property(settings, choices, (given, sequence) => {
        const written = results(given, sequence);
        fc.pre(written !== null && bodies(written.world, "children_started").length > 0);
        const { wait } = given.effect;
        const succeeded = latest(written.world).filter((child) => child.ended && hasSucceeded(child)).length;
        const isEnough = succeeded >= (wait === "all" ? given.total : wait);
        if (written.result === "succeeded") expect(isEnough).toBe(true);
        else expect(isEnough).toBe(false);
      }),
    );
  });

  test("never passes over a blocked child that was needed without an operator's word", () => {
    fc.assert(
      fc.property(settings, choices, (given, sequence) => {
        const written = results(given, sequence);
        fc.pre(written !== null && given.effect.onBlocked === "operator");
        const { wait } = given.effect;
        const good = latest(written.world).filter(
          ({ ended, outcome }) => ended && outcome !== null && outcome.kind !== "blocked",
        );
        const isShort = good.length < (wait === "all" ? given.total : wait);
        const hasBlocked = latest(written.world).some(({ outcome }) => outcome?.kind === "blocked");
        if (isShort && hasBlocked) expect(bodies(written.world, "operator").length).toBeGreaterThan(0);
      }),
    );
  });

  test("is of every kind somewhere in these runs, and parents are woken in some and left asleep in others", () => {
    const sample = fc.sample(fc.tuple(settings, choices), { numRuns: 500, seed: 7 });
    const kinds = sample.map(([given, sequence]) => results(given, sequence)?.result);
    expect(new Set(kinds)).toEqual(
      new Set(["succeeded", "partial", "blocked", "failed", "skipped", "rejected", "denied"]),
    );
    const tellings = sample.flatMap(([given, sequence]) => last(history(aWorld(given), sequence)).tellings);
    expect(tellings.filter(({ hasToAct }) => hasToAct).length).toBeGreaterThan(50);
    expect(tellings.filter(({ hasToAct }) => !hasToAct).length).toBeGreaterThan(50);
    const tries = sample.map(([given, sequence]) =>
      last(history(aWorld(given), sequence)).children.map((child) => child.try),
    );
    expect(Math.max(...tries.flat())).toBeGreaterThan(2);
  });
});
