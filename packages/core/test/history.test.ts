import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callOf } from "../src/as-it-runs.ts";
import { type Appended, callsOfTurn, type RunHistory, recordOf, runHistory } from "../src/history.ts";
import type { PlanInput } from "../src/next.ts";
import { plan } from "../src/plan.ts";
import { planCall } from "../src/plan-call.ts";
import type { Call, Step, StepBody } from "../src/step.ts";
import {
  aCall,
  aMessage,
  anApproval,
  anEffect,
  anInput,
  aReply,
  aResult,
  type InputPatch,
  NEEDS_APPROVAL,
  steps,
} from "./builders.ts";
import { randomRun } from "./random-histories.ts";

const NOTHING = runHistory([], []);

/** The history after each commit, made by appending. */
function grown(commits: readonly Appended[]): readonly RunHistory[] {
  const made = [NOTHING];
  for (const commit of commits) made.push((made.at(-1) ?? NOTHING).append(commit));
  return made;
}

/** The same, made from all rows at once. */
function atOnce(commits: readonly Appended[]): RunHistory {
  return runHistory(
    commits.flatMap((commit) => commit.steps ?? []),
    commits.flatMap((commit) => commit.calls ?? []),
  );
}

/** All that is decided of a run: what comes next, and what would for each of its calls. */
function decided(input: PlanInput) {
  const { calls } = input.history.known;
  return { next: plan(input), calls: calls.map(({ id }) => planCall(input, callOf(input, id))) };
}

describe("a history", () => {
  test("that was appended to is planned over like one that is made at once", () => {
    fc.assert(
      fc.property(randomRun, ({ commits, beside }) => {
        const input = anInput(beside);
        const history = grown(commits).at(-1) ?? NOTHING;
        expect(decided({ ...input, history })).toEqual(decided({ ...input, history: atOnce(commits) }));
      }),
    );
  });

  test("stays as it is whatever is appended to it, in whichever order it is looked at", () => {
    fc.assert(
      fc.property(randomRun, fc.array(fc.nat(30), { maxLength: 8 }), ({ commits, beside }, looks) => {
        const input = anInput(beside);
        const made = grown(commits);
        for (const look of [...looks, commits.length]) {
          const at = look % made.length;
          const history = made[at] ?? NOTHING;
          expect(decided({ ...input, history })).toEqual(decided({ ...input, history: atOnce(commits.slice(0, at)) }));
        }
      }),
    );
  });

  test("may be appended to twice: neither sees what the other has", () => {
    fc.assert(
      fc.property(randomRun, randomRun, fc.nat(30), (one, other, at) => {
        const cut = at % (one.commits.length + 1);
        const made = grown(one.commits);
        const commits = [...one.commits.slice(0, cut), ...renamed(other.commits)];
        const forked = renamed(other.commits).reduce((history, commit) => history.append(commit), made[cut] ?? NOTHING);
        const input = anInput(one.beside);
        expect(decided({ ...input, history: forked })).toEqual(decided({ ...input, history: atOnce(commits) }));
        const whole = { ...input, history: made.at(-1) ?? NOTHING };
        expect(decided(whole)).toEqual(decided({ ...input, history: atOnce(one.commits) }));
      }),
    );
  });

  test("shows an append in the newer one only", () => {
    const before = NOTHING.append({ calls: [aCall(1)], steps: steps(aReply(["call_1"])) });
    const after = before.append({ steps: [{ seq: 2, atMs: 0, body: aResult("call_1") }] });
    expect(recordOf(after, "call_1").result).toMatchObject({ result: "succeeded" });
    expect([before.known.steps.length, recordOf(before, "call_1").result]).toEqual([1, null]);
    expect([after.known.steps.length, after.append({}).known.steps.length]).toEqual([2, 2]);
  });
});

describe("what a history knows", () => {
  test("is nothing of turns and calls that it has not seen", () => {
    expect(callsOfTurn(NOTHING, 1)).toEqual([]);
    expect(recordOf(NOTHING, "call_1")).toMatchObject({ result: null, attempts: 0 });
  });

  const same = { tool: "find_order", argsHash: "same" };
  const plannedAfter = (first: StepBody, second: StepBody, patch: InputPatch = {}) => {
    const calls = [1, 2, 3].map((turn) => aCall(turn, { turn, ...same }));
    const asked = calls.map(({ id, turn }) => aReply([id], { turn }));
    const [one, two, three] = asked;
    if (one === undefined || two === undefined || three === undefined) throw new Error("there are three");
    return plan(anInput({ calls, steps: steps(one, first, two, second, three), ...patch }));
  };

  test("is the last refusal of a work, of whatever kind", () => {
    const [rejected, expired] = ["rejected", "expired"] as const;
    const [no, silence] = [
      { result: rejected, output: "No." },
      { result: expired, output: "Late." },
    ];
    const last = (first: typeof no | typeof silence, second: typeof no | typeof silence) =>
      plannedAfter(aResult("call_1", first), aResult("call_2", second));
    expect(last(no, silence)).toMatchObject({ result: "expired" });
    expect(last(silence, no)).toMatchObject({ result: "rejected" });
  });

  test("is what calls came to as they ran, in the order in which they ended, where a person has changed them", () => {
    const edits = [anApproval(aCall(1), { argsHash: "same", editedBy: "user:bob" })];
    const refused = (callId: string, output: string) => aResult(callId, { result: "rejected", output });
    const next = plannedAfter(refused("call_1", "First."), refused("call_2", "Second."), { approvals: edits });
    expect(next).toMatchObject({ do: "write_result", output: expect.stringContaining("Second.") });
    const elsewhere = [anApproval(aCall(2), { argsHash: "other", editedBy: "user:bob" })];
    const left = plannedAfter(refused("call_1", "First."), refused("call_2", "Second."), { approvals: elsewhere });
    expect(left).toMatchObject({ do: "write_result", output: expect.stringContaining("First.") });
  });
});

/** The commits with other names for their calls. */
function renamed(commits: readonly Appended[]): readonly Appended[] {
  return JSON.parse(JSON.stringify(commits).replaceAll(/"(\d+\/\d)"/g, '"other $1"')) as readonly Appended[];
}

/** Rows that count how often anything of them is read. */
function counted() {
  let reads = 0;
  const watch = <Row extends object>(row: Row): Row =>
    new Proxy(row, {
      get(target, key, receiver) {
        reads += 1;
        return Reflect.get(target, key, receiver);
      },
    });
  const readsOf = (work: () => void): number => {
    reads = 0;
    work();
    return reads;
  };
  return { watch, readsOf };
}

interface Shape {
  readonly calls: readonly Call[];
  readonly bodies: readonly StepBody[];
  readonly beside?: InputPatch;
  readonly does: string;
}

const named = (length: number, patch: Partial<Call> = {}) =>
  Array.from({ length }, (_, index) => aCall(index, { turn: index + 1, ...patch }));

/** Runs of about so many steps, of each kind that grows. */
const LONG: Readonly<Record<string, (size: number) => Shape>> = {
  "a turn for each call": (size) => {
    const calls = named(size);
    const turns = calls.flatMap(({ id, turn }) => [aReply([id], { turn }), aResult(id)]);
    return { calls, bodies: turns, does: "call_model" };
  },
  "one turn with all calls": (size) => {
    const calls = named(size, { turn: 1 });
    const results = calls.slice(0, -1).map(({ id }) => aResult(id));
    return { calls, bodies: [aReply(calls.map(({ id }) => id)), ...results], does: "execute" };
  },
  "the same read again and again": (size) => {
    const calls = named(size, { argsHash: "same" });
    const bodies = calls.flatMap(({ id, turn }) => [aReply([id], { turn }), aResult(id)]).slice(0, -1);
    return { calls, bodies, does: "execute" };
  },
  "the same effect again and again": (size) => {
    const calls = named(size, { argsHash: "same", effect: anEffect() });
    const bodies = calls.flatMap(({ id, turn }) => [aReply([id], { turn }), aResult(id)]).slice(0, -1);
    return { calls, bodies, does: "write_result" };
  },
  "effects that a person has to release": (size) => {
    const calls = named(size, { effect: anEffect(), verdict: NEEDS_APPROVAL });
    const bodies = calls.flatMap(({ id, turn }) => [aReply([id], { turn }), aResult(id)]).slice(0, -1);
    return { calls, bodies, does: "hold" };
  },
  "a conversation": (size) => ({
    calls: [],
    bodies: Array.from({ length: size }, (_, index) => [aReply([], { turn: index + 1 }), aMessage()]).flat(),
    does: "call_model",
  }),
  "a graph": (size) => {
    const calls = named(size);
    const bodies = calls.flatMap(({ id, turn }): StepBody[] => [
      { kind: "nodes_started", turn, callIds: [id], nodes: [] },
      aResult(id),
    ]);
    return { calls, bodies, beside: { isGraph: true }, does: "decide" };
  },
};

const MANY = { turns: 10_000, tokens: 1_000_000, costUsd: null, wallMs: null };
/** Reads of any property of any step or call. */
const READS = 60;

describe.each(Object.entries(LONG))("a long run: %s", (_, shapeOf) => {
  const { watch, readsOf } = counted();
  const longRun = (size: number) => {
    const { calls, bodies, beside, does } = shapeOf(size);
    const history = runHistory(steps(...bodies).map(watch), calls.map(watch));
    return { does, input: { ...anInput({ limits: MANY, ...beside }), history } };
  };

  test("is planned with as many reads as a short one", () => {
    const [short, long] = [longRun(10), longRun(1_000)];
    expect(plan(long.input).do).toBe(long.does);
    const few = readsOf(() => plan(short.input));
    expect(few).toBeLessThan(READS);
    expect(readsOf(() => plan(long.input))).toBe(few);
  });

  test("takes in one step more without reading those before it", () => {
    const { input } = longRun(1_000);
    const step: Step = { seq: 9_999, atMs: 0, body: aMessage() };
    const looked = readsOf(() => plan({ ...input, history: input.history.append({ steps: [step] }) }));
    expect(looked).toBeLessThan(READS);
  });
});
