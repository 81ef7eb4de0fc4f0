// The sweep over all crash points of the reference run: an order is looked up, its refund is quoted, sent after a
// manager's approval, and the customer is told. At every point in turn a worker is killed, or its connection breaks,
// and others carry on. Every play has to end with one refund, one message, a history without a gap and a conversation
// that a provider would take.

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Crew, openCrew } from "./crew.ts";
import { type Plan, type Played, play } from "./play.ts";
import { openStageBuilder, type StageBuilder } from "./stage.ts";

/** Plays at once: two processors, and a play waits for its server half of the time. */
const LANES = 3;
const SWEEP_MS = 900_000;

const stack = new AsyncDisposableStack();
let crew: Crew;
let builder: StageBuilder;
/** The points of a run that nothing happens to, by name. */
let points: readonly string[] = [];
const all: Played[] = [];

beforeAll(async () => {
  builder = stack.use(await openStageBuilder());
  crew = stack.use(await openCrew(LANES + 2));
  points = (await playWell({ faults: [] })).passed;
});

afterAll(async () => {
  const sum = (count: (played: Played) => number) => all.reduce((total, played) => total + count(played), 0);
  const duplicates = sum(({ refunds, notifications }) => Math.max(0, refunds - 1) + Math.max(0, notifications - 1));
  const lost = sum(({ refunds, notifications }) => Math.max(0, 1 - refunds) + Math.max(0, 1 - notifications));
  process.stdout.write(
    `crash points: ${points.length}, plays: ${all.length}, duplicate effects: ${duplicates}, lost effects: ${lost}\n`,
  );
  await stack.disposeAsync();
});

async function playWell(plan: Plan): Promise<Played> {
  const played = await play(crew, builder, plan);
  expect(played.wrong).toEqual([]);
  return played;
}

interface Bad {
  readonly point: string;
  readonly wrong: readonly string[];
  readonly history: readonly string[];
}

/** Plays a plan for each of these points, some at once. Gives the plays that were not good, and what was wrong. */
async function sweep(names: readonly (string | null)[], planFor: (at: number) => Plan): Promise<readonly Bad[]> {
  const left = names.flatMap((name, index) => (name === null ? [] : [{ name, at: index + 1 }]));
  // A point that is called otherwise now must not leave a sweep over nothing.
  expect(left).not.toEqual([]);
  const bad: Bad[] = [];
  const lane = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { name, at } = next;
      const played = await play(crew, builder, planFor(at));
      all.push(played);
      const met = played.met.at(-1);
      const elsewhere = met?.name === name && met.number === at ? [] : [`the fault was at ${met?.number} ${met?.name}`];
      const wrong = [...elsewhere, ...played.wrong];
      if (wrong.length > 0) bad.push({ point: `${at} ${name}`, wrong, history: played.history });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return bad;
}

/** The points at which something leaves the process. */
function sendingPoints(): readonly (string | null)[] {
  return points.map((name) => (name.endsWith(":sent") || name.endsWith(":request") ? name : null));
}

test("a worker that is killed, at any point, leaves one refund, one message and a run that ends", {
  timeout: SWEEP_MS,
}, async () => {
  expect(await sweep(points, (at) => ({ faults: [{ at, mode: "kill" }] }))).toEqual([]);
});

test("so does one whose connection breaks, before something is sent or before its answer is heard", {
  timeout: SWEEP_MS,
}, async () => {
  expect(await sweep(points, (at) => ({ faults: [{ at, mode: "break" }] }))).toEqual([]);
});

test("so does one that is found by the end of its lease, and whose last sending arrives after that", {
  timeout: SWEEP_MS,
}, async () => {
  const plan = (at: number): Plan => ({
    faults: [{ at, mode: "kill" }],
    foundBy: "sweeper",
    arrives: "after_recovery",
  });
  expect(await sweep(sendingPoints(), plan)).toEqual([]);
});

test("so does one whose last sending arrives when others have ended the run", { timeout: SWEEP_MS }, async () => {
  expect(await sweep(sendingPoints(), (at) => ({ faults: [{ at, mode: "kill" }], arrives: "after_end" }))).toEqual([]);
});

test.each(["kill", "break"] as const)(
  "so does a worker with a provider that knows no keys, at each %s around the refund",
  { timeout: SWEEP_MS },
  async (mode) => {
    const [first, last] = [
      points.lastIndexOf("statement:claim_runs:sent"),
      points.indexOf("tool:send_refund:after") + 2,
    ];
    const around = points.map((name, index) => (index >= first && index <= last ? name : null));
    expect(await sweep(around, (at) => ({ faults: [{ at, mode }], offers: "look_up" }))).toEqual([]);
  },
);

test("a refund that arrives behind the look-up which has not found it is found by the next", async () => {
  const at = points.indexOf("provider:request") + 1;
  all.push(await playWell({ faults: [{ at, mode: "kill" }], offers: "look_up", arrives: "after_look_up" }));
});

test.each(["provider:request", "provider:reply", "statement:insert refund_desk.notifications:answered"])(
  "so does a second worker that is killed while it settles what the first left at %s",
  { timeout: SWEEP_MS },
  async (name) => {
    const first = { at: points.indexOf(name) + 1, mode: "kill" } as const;
    const { passed } = await playWell({ faults: [first] });
    // Until it asks the model it settles; what comes then is the first sweep's.
    const settling = passed.slice(0, passed.indexOf("model:before"));
    expect(await sweep(settling, (at) => ({ faults: [first, { at, mode: "kill" }] }))).toEqual([]);
  },
);
