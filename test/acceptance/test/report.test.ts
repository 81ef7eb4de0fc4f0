import { describe, expect, test } from "vitest";
import { buildReport, compareTask, type RunCounts, renderReport, type TaskEvidence } from "../tau-retail/report.ts";
import type { ExpectedTask, RetailTask } from "../tau-retail/retail-data.ts";

const task: RetailTask = {
  id: "7",
  user_id: "anna_1",
  instruction: "",
  actions: [
    { name: "get_order_details", arguments: {} },
    { name: "cancel_pending_order", arguments: {} },
    { name: "modify_user_address", arguments: {} },
  ],
  outputs: [],
};
const expected: ExpectedTask = {
  sha256: "end",
  actions: 3,
  writes: 2,
  writes_ok: 1,
  errors: [{ index: 1, code: "ORDER_NOT_PENDING" }],
  results: ["r0", "r1", "r2"],
};
const cancelRow = { key: "op-1", tool: "cancel_pending_order", ok: false, resultSha256: "r1" };
const addressRow = { key: "op-2", tool: "modify_user_address", ok: true, resultSha256: "r2" };
const asExpected: TaskEvidence = {
  taskId: "7",
  runStatus: "completed",
  runOutcome: "succeeded",
  resultsSha256: ["r0", "r1", "r2"],
  stateSha256: "end",
  journal: [cancelRow, addressRow],
};
const compare = (changed: Partial<TaskEvidence>) => compareTask(task, expected, { ...asExpected, ...changed });

describe("compareTask", () => {
  test("finds nothing where all is as expected", () => {
    expect(compare({})).toEqual({
      taskId: "7",
      differences: [],
      journalRows: 2,
      expectedRows: 2,
      duplicateEffects: 0,
    });
  });

  test.each<[string, Partial<TaskEvidence>, string]>([
    ["a run that has not ended", { runStatus: "waiting_operator", runOutcome: null }, "the run is waiting_operator"],
    ["a blocked run", { runOutcome: "blocked" }, "the run is completed, blocked"],
    ["a missing result", { resultsSha256: ["r0", "r1"] }, "2 tool results instead of 3"],
    ["another result", { resultsSha256: ["r0", "x", "r2"] }, "the result of call 1 differs"],
    ["another state", { stateSha256: "x" }, "the state's hash differs"],
    ["a lost write", { journal: [cancelRow] }, "1 journal rows instead of 2"],
    ["another tool", { journal: [addressRow, cancelRow] }, "journal row 0 is modify_user_address"],
    ["another outcome", { journal: [{ ...cancelRow, ok: true }, addressRow] }, "2 successful writes instead of 1"],
    [
      "another journalled result",
      { journal: [cancelRow, { ...addressRow, resultSha256: "x" }] },
      "in journal row 1 differs",
    ],
  ])("names %s", (_what, changed, difference) => {
    expect(compare(changed).differences.join("; ")).toContain(difference);
  });

  test("counts a write done twice, under one key or under two", () => {
    const again = { ...addressRow, key: "op-3" };
    for (const second of [addressRow, again]) {
      const finding = compare({ journal: [cancelRow, addressRow, second] });
      expect(finding.duplicateEffects).toBe(1);
      expect(finding.differences).toContain("1 duplicate effects");
    }
  });

  test("counts a doubled key that hides a lost write", () => {
    const finding = compare({ journal: [cancelRow, { ...addressRow, key: "op-1" }] });
    expect(finding).toMatchObject({ duplicateEffects: 1, differences: ["1 duplicate effects"] });
  });
});

describe("buildReport", () => {
  const counts: RunCounts = {
    seed: "s-1",
    kills: 31,
    killsAfterWrite: 12,
    killsOfMachines: 3,
    takeovers: 25,
    lookUps: 9,
    operatorRetries: ["quarantined", "quarantined"],
    invariantViolations: 0,
    durationMs: 61_400,
    faults: [],
  };
  const minimums = { kills: 30, killsAfterWrite: 10, takeovers: 20 };

  test("passes when every task is equal and enough has happened", () => {
    const report = buildReport([compare({}), compare({})], counts, minimums);
    expect(report).toMatchObject({ tasks: 2, tasksEqual: 2, journalRows: 4, expectedRows: 4, failures: [] });
    expect(renderReport(report)).toBe(
      [
        "tasks equal           2 of 2",
        "journal rows          4 of 4 expected",
        "duplicate effects     0",
        "kills                 31, 12 of them after a write had left, 3 of whole machines",
        "takeovers             25",
        "look-ups              9",
        "operator retries      2 quarantined",
        "invariant violations  0",
        "duration              61 s",
        "seed                  s-1 (again: npm run test:acceptance -- --seed s-1)",
        "acceptance passed",
        "",
      ].join("\n"),
    );
  });

  test("fails on one unequal task and says which and why", () => {
    const report = buildReport([compare({}), compare({ stateSha256: "x" })], counts, minimums);
    expect(report).toMatchObject({ tasksEqual: 1, failures: ["task 7: the state's hash differs"] });
    expect(renderReport(report)).toContain("acceptance failed (1)");
  });

  test.each<[string, Partial<RunCounts>]>([
    ["too few kills", { kills: 29 }],
    ["too few kills after a write", { killsAfterWrite: 9 }],
    ["too few takeovers", { takeovers: 19 }],
    ["a violated invariant", { invariantViolations: 1 }],
    ["a fault beside the tasks", { faults: ["the time is up"] }],
  ])("fails on %s", (_what, changed) => {
    expect(buildReport([compare({})], { ...counts, ...changed }, minimums).failures).toHaveLength(1);
  });

  test("fails when nothing was compared", () => {
    expect(buildReport([], counts, minimums).failures).toEqual(["no task was compared"]);
  });
});
