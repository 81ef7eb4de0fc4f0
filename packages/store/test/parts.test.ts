import { expect, test } from "vitest";
import { rowsOf } from "../src/parts.ts";

test("a row of a batch has the columns that are read and no other, and leaves out what is null anyway", () => {
  const rows = [
    { ord: 0, runId: "r1", progress: false, currentStep: "", start: null, calls: undefined, other: 1 },
    { ord: 1, runId: "r2", progress: true, currentStep: null, start: { kind: "intent" } },
  ];
  expect(rowsOf(rows, ["ord", "runId", "progress", "currentStep", "start", "calls"])).toStrictEqual([
    { ord: 0, runId: "r1", progress: false, currentStep: "" },
    { ord: 1, runId: "r2", progress: true, start: { kind: "intent" } },
  ]);
});
