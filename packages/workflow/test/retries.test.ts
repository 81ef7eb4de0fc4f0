import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import type { History } from "../src/history.ts";
import { retriesOf } from "../src/retries.ts";
import type { Workflow } from "../src/workflow.ts";
import { play, type Result } from "./player.ts";
import { agent, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.json() };
const COMPLETE = new Set(["done", "skipped", "passed_over"]);

/** What a run begins with that goes on after a failed one: what that had completed, and what it tries again. */
function resumed(workflow: Workflow, { input, executions, choices }: History): History {
  const kept = executions.filter(({ state }) => COMPLETE.has(state));
  const retried = retriesOf(workflow, { executions: kept, choices });
  return { input, executions: kept, choices: [...choices, ...retried] };
}

describe("a run that goes on after failed ones", () => {
  const loop = defineWorkflow({
    ...base,
    nodes: {
      draft: agent,
      check: {
        kind: "gate",
        gate: "feedback",
        after: ["draft"],
        judge: (scope) => ({ pass: scope.need("draft") === "good", feedback: "bad" }),
        rework: "draft",
      },
      send: { ...agent, after: ["check"] },
    },
  });
  const asBad = (): Result => ({ output: "bad" });

  test("tries nothing again where nothing is in the way", () => {
    const { history } = play(loop, ({ node }) => (node === "send" ? { state: "failed" } : { output: "good" }));
    expect(retriesOf(loop, { executions: [], choices: [] })).toEqual([]);
    const again = resumed(loop, history);
    expect(again.choices).toEqual([]);
    expect(decide(loop, again)).toMatchObject({ do: "start", nodes: [{ node: "send", round: 1 }] });
  });

  test("lets a loop whose rounds were over go round once more, each time", () => {
    const first = play(loop, asBad);
    expect(first.last).toMatchObject({ do: "hold", reason: "rounds_exhausted", round: 2 });
    const second = play(loop, asBad, resumed(loop, first.history));
    expect(second.last).toMatchObject({ do: "hold", reason: "rounds_exhausted", round: 3 });
    const third = play(loop, () => ({ output: "good" }), resumed(loop, second.history));
    expect(third.last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
    expect(third.started.slice(-3)).toEqual(["draft#4", "check#4", "send"]);
  });

  test("starts the items of a map anew that were blocked, or brought what does not fit, and no other", () => {
    const map = defineWorkflow({
      ...base,
      nodes: {
        each: {
          kind: "agent",
          agent: worker,
          forEach: () => ["a", "b", "c"],
          item: text,
          atMost: 3,
          goal: ({ item }) => item,
          output: text,
        },
      },
    });
    const results: readonly Result[] = [{ output: "x" }, { output: 7 }, { output: "x", result: "blocked" }];
    const first = play(map, ({ item }) => results[item ?? 0] ?? {});
    expect(first.last).toMatchObject({ do: "hold", reason: "invalid_node_output", item: 1 });
    expect(decide(map, resumed(map, first.history))).toMatchObject({
      do: "start",
      nodes: [
        { node: "each", item: 1 },
        { node: "each", item: 2 },
      ],
    });
  });
});
