import { expect, test } from "vitest";
import * as workflow from "../src/index.ts";
import { known } from "../src/known.ts";

test("the package gives away these names and no other", () => {
  expect(Object.keys(workflow).sort()).toEqual([
    "HOLD_CHOICES",
    "checkMigration",
    "decide",
    "defineWorkflow",
    "growHistory",
    "isSettled",
    "progressOf",
    "retriesOf",
  ]);
});

test("a hold offers exactly these choices", () => {
  expect(workflow.HOLD_CHOICES).toEqual(["retry", "skip", "abort"]);
});

test("a start that settles by itself can be told from work", () => {
  const at = { node: "a", round: 1, item: null, input: null };
  expect(workflow.isSettled({ ...at, kind: "pass", settled: { state: "passed_over", output: null } })).toBe(true);
  expect(workflow.isSettled({ ...at, kind: "tool", tool: "t", retries: null })).toBe(false);
});

test("maps of different definitions do not go together", () => {
  expect(known(new Map([["a", 1]]), "a")).toBe(1);
  expect(() => known(new Map([["a", 1]]), "b")).toThrow("nothing is known of b");
});
