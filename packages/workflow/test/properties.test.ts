import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decide } from "../src/decide.ts";
import type { Execution, History } from "../src/history.ts";
import { isMap } from "../src/standing.ts";
import type { Workflow } from "../src/workflow.ts";
import { choose, nameOf, play, type Result, settle, start, started } from "./player.ts";
import { anyGates, anyGraph } from "./random-workflows.ts";

const done = (): Result => ({ output: "x" });
const LONGEST = 500;

const BEGIN = { step: 0, history: started() };

/** All histories that a workflow goes through; what ends next is chosen by these numbers. */
function histories(
  workflow: Workflow,
  picks: readonly number[],
  result: (execution: Execution) => Result,
  from: { readonly step: number; readonly history: History } = BEGIN,
): History[] {
  const all = [from.history];
  for (let { step } = from; step < LONGEST; step += 1) {
    const history = all.at(-1) ?? from.history;
    const decision = decide(workflow, history);
    const open = history.executions.filter(({ state }) => state === "open");
    const ended = open[(picks[step % picks.length] ?? 0) % Math.max(1, open.length)];
    if (decision.do === "start") all.push(start(history, decision.nodes));
    else if (decision.do === "wait" && ended !== undefined) all.push(settle(history, result(ended), ended.callId));
    else return all;
  }
  throw new Error(`no end after ${LONGEST} steps`);
}

const picks = fc.array(fc.nat(20), { minLength: 1, maxLength: 30 });

// Under load and with coverage they take their time.
const PATIENT = { timeout: 60_000 };

describe("any graph", PATIENT, () => {
  test("executes every node exactly once, and none before those it comes after are complete", () => {
    fc.assert(
      fc.property(anyGraph({ isPlain: true }), picks, (workflow, order) => {
        const all = histories(workflow, order, done);
        for (const [index, history] of all.slice(1).entries()) {
          const before = all[index]?.executions ?? [];
          const upstream = history.executions
            .slice(before.length)
            .flatMap(({ node }) => workflow.nodes.get(node)?.after ?? []);
          expect(upstream.filter((name) => !isComplete(workflow, before, name))).toEqual([]);
        }
        const last = all.at(-1) ?? started();
        const names = last.executions.map(nameOf);
        expect(new Set(names).size).toBe(names.length);
        for (const name of workflow.nodes.keys()) expect(names).toContain(name);
        expect(decide(workflow, last)).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
      }),
    );
  });

  test("ends, with every node complete and nothing open, whatever conditions and joins it has", () => {
    fc.assert(
      fc.property(anyGraph({ isPlain: false }), picks, (workflow, order) => {
        const last = histories(workflow, order, done).at(-1) ?? started();
        expect(decide(workflow, last)).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
        expect(new Set(last.executions.map(({ node }) => node))).toEqual(new Set(workflow.nodes.keys()));
        expect(last.executions.filter(({ state }) => state === "open")).toEqual([]);
      }),
    );
  });

  test("never has more open than it may", () => {
    fc.assert(
      fc.property(anyGraph({ isPlain: false }), picks, (workflow, order) => {
        for (const { executions } of histories(workflow, order, done)) {
          const open = executions.filter(({ state }) => state === "open");
          const names = new Set(open.map(({ node }) => node));
          expect(names.size).toBeLessThanOrEqual(workflow.parallel);
          for (const name of names) {
            const items = open.filter(({ node }) => node === name).length;
            expect(items).toBeLessThanOrEqual(isMapAt(workflow, name) ? 2 : 1);
          }
        }
      }),
    );
  });

  test("goes on in the same way from rows that were read anew, at any point", () => {
    fc.assert(
      fc.property(anyGraph({ isPlain: false }), picks, fc.nat(), (workflow, order, point) => {
        const all = histories(workflow, order, done);
        const step = point % all.length;
        // As from the database: nothing of the process before is left but values.
        const read: History = JSON.parse(JSON.stringify(all[step]));
        expect(histories(workflow, order, done, { step, history: read })).toEqual(all.slice(step));
      }),
    );
  });

  test("starts nothing twice if its start was stored and the answer lost", () => {
    fc.assert(
      fc.property(anyGraph({ isPlain: false }), picks, (workflow, order) => {
        for (const history of histories(workflow, order, done)) {
          const decision = decide(workflow, history);
          if (decision.do !== "start") continue;
          const next = decide(workflow, start(history, decision.nodes));
          const names = next.do === "start" ? next.nodes.map(nameOf) : [];
          expect(names.filter((name) => decision.nodes.map(nameOf).includes(name))).toEqual([]);
        }
      }),
    );
  });

  test("comes to its end by skips and retries, whatever fails", () => {
    const fails = fc.array(fc.boolean(), { minLength: 1, maxLength: 20 });
    const choices = fc.array(fc.constantFrom("skip" as const, "retry" as const), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(anyGraph({ isPlain: false }), fails, choices, (workflow, failing, chosen) => {
        const { history, last } = playWithPeople(workflow, failing, chosen);
        const hasSkipped = history.choices.some(({ choice }) => choice === "skip");
        expect(last).toMatchObject({ do: "end", outcome: { kind: hasSkipped ? "partial" : "succeeded" } });
      }),
    );
  });
});

describe("any gates", PATIENT, () => {
  const outputs = fc.array(fc.constantFrom("good", "bad"), { minLength: 1, maxLength: 20 });

  test("never say no more often than they may, and then a person is asked", () => {
    fc.assert(
      fc.property(anyGates, outputs, (workflow, drafts) => {
        let executed = 0;
        const { history, last } = play(workflow, () => {
          executed += 1;
          return { output: drafts[executed % drafts.length] ?? "bad" };
        });
        expect(["end", "hold"]).toContain(last.do);
        if (last.do === "hold") expect(last.reason).toBe("rounds_exhausted");
        for (const [name, node] of workflow.nodes) {
          if (node.kind !== "gate") continue;
          const around = [...workflow.graph.loops].filter(([gate, loop]) => gate !== name && loop.has(name));
          const noes = (gate: string) => history.executions.filter((each) => each.node === gate && saysNo(each)).length;
          const resets = around.reduce((sum, [gate]) => sum + noes(gate), 0);
          expect(noes(name)).toBeLessThanOrEqual(node.rounds * (resets + 1));
        }
      }),
    );
  });

  test("run each node once in each of its rounds", () => {
    fc.assert(
      fc.property(anyGates, outputs, (workflow, drafts) => {
        let executed = 0;
        const { started: names } = play(workflow, () => {
          executed += 1;
          return { output: drafts[executed % drafts.length] ?? "bad" };
        });
        expect(new Set(names).size).toBe(names.length);
      }),
    );
  });
});

/** After this many holds everything is skipped. */
const PATIENCE = 20;

/** Plays a workflow in which some executions fail, and people choose. */
function playWithPeople(workflow: Workflow, fails: readonly boolean[], choices: readonly ("skip" | "retry")[]) {
  let history = started();
  let [executed, holds] = [0, 0];
  for (let step = 0; step < LONGEST; step += 1) {
    const decision = decide(workflow, history);
    const open = history.executions.find(({ state }) => state === "open");
    if (decision.do === "end") return { history, last: decision };
    if (decision.do === "start") history = start(history, decision.nodes);
    else if (open !== undefined) {
      history = settle(history, fails[executed % fails.length] === true ? { state: "failed" } : done(), open.callId);
      executed += 1;
    } else {
      history = choose(history, (holds < PATIENCE && choices[holds % choices.length]) || "skip", decision);
      holds += 1;
    }
  }
  throw new Error(`no end after ${LONGEST} steps`);
}

function saysNo({ output }: Execution): boolean {
  return typeof output === "object" && output !== null && "pass" in output && output.pass === false;
}

function isMapAt(workflow: Workflow, name: string): boolean {
  const node = workflow.nodes.get(name);
  return node !== undefined && isMap(node);
}

function isComplete(workflow: Workflow, executions: readonly Execution[], name: string): boolean {
  const own = executions.filter(({ node }) => node === name);
  return own.length === (isMapAt(workflow, name) ? 4 : 1) && own.every(({ state }) => state === "done");
}
