import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import { type GrowingHistory, growHistory } from "../src/growing-history.ts";
import type { Choice, Execution, History } from "../src/history.ts";
import { progressOf } from "../src/progress.ts";
import type { Workflow } from "../src/workflow.ts";
import { started } from "./player.ts";
import { anyGates, anyGraph } from "./random-workflows.ts";
import { agent, text } from "./workflows.ts";

const RESULTS = [
  { state: "done", result: "succeeded", output: "good" },
  { state: "done", result: "succeeded", output: "bad" },
  { state: "done", result: "partial", output: "good" },
  { state: "done", result: "blocked", output: null },
  { state: "done", result: "succeeded", output: 7 },
  { state: "skipped", result: "skipped", output: null },
  { state: "failed", result: "failed", output: null },
] as const satisfies readonly Partial<Execution>[];

const pickOf = <Item>(items: readonly Item[], pick: number): Item | undefined =>
  items[pick % Math.max(1, items.length)];

/** One thing more that happens to an instance: what its graph starts, how something open ends, or a person's word. */
function happen(workflow: Workflow, history: GrowingHistory, pick: number): void {
  const open = pickOf([...history.index.open], pick);
  const decision = decide(workflow, history);
  if (decision.do === "start" && pick % 2 === 0) {
    for (const start of decision.nodes) {
      const { node, round, item } = start;
      const place = { node, round, item, callId: `call-${history.executions.length}`, message: null };
      if ("settled" in start) history.start({ ...place, ...start.settled, result: "succeeded" });
      else history.start({ ...place, state: "open", result: null, output: null });
    }
  } else if (decision.do === "hold" && pick % 3 !== 0) {
    const { node, round, item, callId } = decision;
    history.choose({ choice: pick % 3 === 1 ? "retry" : "skip", node, round, item, callId });
  } else if (open !== undefined) {
    history.settle({ ...open, message: null, ...(pickOf(RESULTS, Math.floor(pick / 3)) ?? {}) });
  } else history.choose(anyChoice(history, pick));
}

/** A word that nobody has asked for: about an execution, or about a place where there may be none. */
function anyChoice({ executions }: History, pick: number): Choice {
  const about = pickOf(executions, pick);
  const choice = pick % 2 === 0 ? "skip" : "retry";
  if (about !== undefined && pick % 5 !== 0) return { ...placeOf(about), choice, callId: about.callId };
  return {
    choice,
    node: pick % 7 === 0 ? null : `n${pick % 3}`,
    round: 1,
    item: pick % 4 === 0 ? pick % 3 : null,
    callId: null,
  };
}

const placeOf = ({ node, round, item }: Execution) => ({ node, round, item });

const anyWorkflow = fc.oneof(anyGraph({ isPlain: false }), anyGates);

describe("a growing history", () => {
  test("is decided from like one that is read at once, after each thing that happens", () => {
    fc.assert(
      fc.property(anyWorkflow, fc.array(fc.nat(999), { maxLength: 20 }), (workflow, picks) => {
        const history = growHistory("in", { executions: [], choices: [] });
        for (const pick of picks) {
          happen(workflow, history, pick);
          const { input, executions, choices } = history;
          const atOnce = { input, executions: [...executions], choices: [...choices] };
          expect(decide(workflow, history)).toEqual(decide(workflow, atOnce));
          expect(progressOf(workflow, history)).toEqual(progressOf(workflow, atOnce));
        }
      }),
    );
  });

  test("goes on with one that there is already", () => {
    fc.assert(
      fc.property(anyWorkflow, fc.array(fc.nat(999), { maxLength: 20 }), fc.nat(20), (workflow, picks, at) => {
        const whole = growHistory("in", started());
        let resumed = growHistory("in", started());
        picks.forEach((pick, index) => {
          if (index === at)
            resumed = growHistory("in", { executions: [...whole.executions], choices: [...whole.choices] });
          for (const history of [whole, resumed]) happen(workflow, history, pick);
          expect(decide(workflow, resumed)).toEqual(decide(workflow, whole));
        });
      }),
    );
  });

  test("knows of nothing that was not started", () => {
    const history = growHistory(null, started());
    const end = { callId: "c1", node: "one", round: 1, item: null, result: null, output: null, message: null } as const;
    expect(() => history.settle({ ...end, state: "done" })).toThrow("nothing is known of c1");
  });

  test("passes over what became of an execution that was tried anew since", () => {
    const workflow = defineWorkflow({ name: "one", version: "1", input: z.json(), nodes: { one: agent } });
    const at = { node: "one", round: 1, item: null, message: null, result: null, output: null } as const;
    const history = growHistory(null, started());
    for (const callId of ["c1", "c2"]) history.start({ ...at, callId, state: "open" });
    history.choose({ ...at, choice: "skip", callId: "c1" });
    history.settle({ ...at, callId: "c1", state: "failed", result: "failed" });
    expect(decide(workflow, history)).toEqual({ do: "wait" });
    history.settle({ ...at, callId: "c2", state: "done", result: "succeeded", output: "x" });
    expect(decide(workflow, history)).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });
});

describe("a map that is decided from again and again", () => {
  const mapOf = (atMost: number) =>
    defineWorkflow({
      name: "map",
      version: "1",
      input: z.json(),
      nodes: { each: { ...agent, forEach: () => [], item: text, atMost } },
    });
  const list = ["a", "b", "c"];
  const at = { node: "each", round: 1, message: null } as const;
  const listed = { ...at, item: null, callId: "list", state: "done", result: "succeeded", output: list } as const;
  const items = (workflow: Workflow, history: GrowingHistory) => {
    const decision = decide(workflow, history);
    return decision.do === "start" ? decision.nodes.map(({ item }) => item) : decision;
  };
  const word = (choice: Choice["choice"], item: number): Choice => ({ ...at, choice, item, callId: null });

  test("starts what an operator skipped before it was started, once the operator wants it after all", () => {
    const workflow = mapOf(2);
    const history = growHistory(null, { executions: [listed], choices: [] });
    history.choose(word("skip", 0));
    expect(items(workflow, history)).toEqual([1, 2]);
    history.choose(word("retry", 0));
    history.choose(word("skip", 99));
    expect(items(workflow, history)).toEqual([0, 1]);
  });

  test("passes over the items that have been started, whichever these are", () => {
    const history = growHistory(null, { executions: [listed], choices: [] });
    history.start({ ...at, item: 1, callId: "c1", state: "open", result: null, output: null });
    expect(items(mapOf(3), history)).toEqual([0, 2]);
  });

  test("holds for the first item that stops it, whichever failed first", () => {
    const workflow = mapOf(3);
    const history = growHistory(null, { executions: [listed], choices: [] });
    for (const item of [2, 1]) {
      const failed = { ...at, item, callId: `c${item}`, state: "failed", result: "failed", output: null } as const;
      history.start(failed);
      expect(items(workflow, history)).toMatchObject({ do: "hold", item });
    }
  });

  test("is judged by each definition for itself", () => {
    const history = growHistory(null, { executions: [listed], choices: [] });
    expect([2, 3, 2].map((atMost) => items(mapOf(atMost), history))).toEqual([
      [0, 1],
      [0, 1, 2],
      [0, 1],
    ]);
  });
});

const MANY = 1_000;

describe("a decision in a long map", () => {
  /** Reads of any property of any execution. */
  const READS = 20;
  const workflow = defineWorkflow({
    name: "long",
    version: "1",
    input: z.json(),
    limits: { items: MANY },
    nodes: { each: { ...agent, forEach: () => [], item: text, atMost: 2 } },
  });
  let reads = 0;
  const watched = (execution: Execution): Execution =>
    new Proxy(execution, {
      get(target, key, receiver) {
        reads += 1;
        return Reflect.get(target, key, receiver);
      },
    });

  test("reads what has changed since the last one, and nothing else", () => {
    const list = Array.from({ length: MANY }, (_, index) => `${index}`);
    const at = { node: "each", round: 1, message: null } as const;
    const whole = { ...at, item: null, callId: "list", state: "done", result: "succeeded", output: list } as const;
    const history = growHistory(null, { executions: [whole], choices: [] });
    const readsOf: number[] = [];
    for (const item of list.keys()) {
      const place = { ...at, item, callId: `c${item}` };
      history.start(watched({ ...place, state: "open", result: null, output: null }));
      // Who decides after each thing that happens has read all before it.
      if (item === 9 || item === MANY - 2) decide(workflow, history);
      history.settle(watched({ ...place, state: "done", result: "succeeded", output: `${item}` }));
      reads = 0;
      if (item === 9 || item === MANY - 2) expect(decide(workflow, history).do).toBe("start");
      readsOf.push(reads);
    }
    expect(decide(workflow, history).do).toBe("end");
    expect(readsOf[9]).toBeLessThan(READS);
    expect(readsOf[MANY - 2]).toBe(readsOf[9]);
  });
});
