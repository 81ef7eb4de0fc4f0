import { expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import type { Execution, History } from "../src/history.ts";
import { progressOf } from "../src/progress.ts";
import { agent, text } from "./workflows.ts";

const MANY = 5_000;
/** Reads of any property of one execution, in one decision. */
const LOOKS = 30;

/** A history whose executions count how often a property of theirs is read. */
function counted(executions: readonly Execution[]): { readonly history: History; readonly looks: () => number } {
  let looks = 0;
  const watched = executions.map(
    (execution) =>
      new Proxy(execution, {
        get(target, key, receiver) {
          looks += 1;
          return Reflect.get(target, key, receiver);
        },
      }),
  );
  return { history: { input: null, executions: watched, choices: [] }, looks: () => looks };
}

const at = { round: 1, message: null, result: "succeeded", state: "done" } as const;

test("a decision looks at each execution a bounded number of times: a map of 5 000 items", () => {
  const workflow = defineWorkflow({
    name: "long",
    version: "1",
    input: z.json(),
    limits: { items: MANY + 1 },
    nodes: {
      each: { ...agent, forEach: () => [], item: text },
      end: { ...agent, after: ["each"], goal: (scope) => `${scope.need("each").length}` },
    },
  });
  const list = Array.from({ length: MANY }, (_, index) => `${index}`);
  const items = list.map((output, item): Execution => ({ ...at, node: "each", item, callId: `c${item}`, output }));
  const { history, looks } = counted([{ ...at, node: "each", item: null, callId: "list", output: list }, ...items]);
  expect(decide(workflow, history)).toMatchObject({ do: "start", nodes: [{ node: "end", input: { goal: "5000" } }] });
  expect(looks()).toBeLessThanOrEqual(LOOKS * MANY);
  expect(progressOf(workflow, history)).toMatchObject({ done: 1, next: ["end"] });
  expect(looks()).toBeLessThanOrEqual(2 * LOOKS * MANY);
});

test("a decision looks at each execution a bounded number of times: retries of one node", () => {
  const workflow = defineWorkflow({ name: "long", version: "1", input: z.json(), nodes: { one: agent } });
  const failed = Array.from(
    { length: MANY },
    (_, index): Execution => ({ ...at, state: "failed", node: "one", item: null, callId: `c${index}`, output: null }),
  );
  const { history, looks } = counted(failed);
  expect(decide(workflow, history)).toMatchObject({ do: "hold", callId: `c${MANY - 1}` });
  expect(looks()).toBeLessThanOrEqual(LOOKS * MANY);
});
