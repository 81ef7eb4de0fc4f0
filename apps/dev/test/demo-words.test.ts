import { describe, expect, test } from "vitest";
import { inset } from "../src/demo/command-line.ts";
import { localTimes, money, tell, timeOfDay } from "../src/demo/in-words.ts";
import { nodesIn } from "../src/demo/killed-workflow.ts";
import { openNarrator } from "../src/demo/narrator.ts";

/** Of a narrow terminal. */
const COLUMNS = 100;
const NOW = new Date(2026, 10, 30, 14, 0, 0);

describe("localTimes", () => {
  test("gives the time of day, and the date where it is another day", () => {
    const soon = new Date(2026, 10, 30, 14, 5, 7);
    const tomorrow = new Date(2026, 11, 1, 14, 0, 0);
    const text = `since ${soon.toISOString()}, until ${tomorrow.toISOString()}.`;
    expect(localTimes(text, NOW)).toBe("since 14:05:07, until Dec 01 14:00:00.");
    expect(timeOfDay(soon)).toBe("14:05:07");
  });
});

describe("tell", () => {
  const actor = { kind: "approver", id: "max" };
  const at = NOW.toISOString();

  test("says who was refused what", () => {
    const refusal = {
      kind: "refusal",
      at,
      event: "CancelRequested",
      rule: "run_ended",
      status: "completed",
      actor,
    } as const;
    expect(tell(refusal)).toEqual({ what: "cancel refused: run ended", side: "stays completed" });
  });

  test.each([
    ["approve", "approves send_refund"],
    ["approve_with_edits", "changes and approves send_refund"],
    ["reject_and_abort", "stops the run, and rejects send_refund"],
  ] as const)("says who decided %s", (decision, what) => {
    const given = { approvalId: "apr_1", tool: "send_refund", level: 0, note: null };
    expect(tell({ kind: "decision", at, decision, actor, ...given })).toEqual({ what, side: "" });
  });

  test("shows a status only where it moved", () => {
    const moved = {
      kind: "transition",
      at,
      seq: 2,
      from: "queued",
      to: "running",
      event: "Claimed",
      actor,
      reason: null,
    } as const;
    expect(tell(moved).side).toBe("queued → running");
    expect(tell({ ...moved, from: "running" }).side).toBe("");
  });
});

test("what a timeline says of nodes is read from their own steps, in order and with every repetition", () => {
  const step = (seq: number, kind: string, line: string) =>
    ({ kind: "step", at: NOW.toISOString(), seq, step: kind, line }) as const;
  const timeline = [
    step(1, "nodes_started", "turn 1: intake starts"),
    step(2, "tool_result", "intake: succeeded"),
    step(3, "nodes_started", "turn 2: policy is done, refund starts"),
    step(4, "nodes_started", "turn 3: refund starts"),
  ];
  expect(nodesIn(timeline)).toEqual(["intake starts", "policy is done", "refund starts", "refund starts"]);
});

test("money has two decimals", () => {
  expect(money(18_401, "eur")).toBe("EUR 184.01");
  expect(money(5, "usd")).toBe("USD 0.05");
});

test("a command's output is indented, and cut where a line is too long", () => {
  const lines = inset(`short\n\n${"x".repeat(COLUMNS)}\n`).split("\n");
  expect(lines[0]).toBe("     short");
  expect(lines[1]).toBe("");
  expect(lines[2]).toMatch(/^ {5}x+…$/);
  for (const line of lines) expect(line.length).toBeLessThan(COLUMNS);
});

describe("the narrator", () => {
  const told = () => {
    const texts: string[] = [];
    return { texts, narrator: openNarrator((text) => texts.push(text)) };
  };

  test("throws at a claim that does not hold, and says which", () => {
    const { texts, narrator } = told();
    expect(() => narrator.claim("the ledger has one refund", false)).toThrow("the ledger has one refund");
    expect(texts).toEqual([]);
    narrator.claim("the ledger has one refund", true);
    expect(texts.join("")).toContain("the ledger has one refund");
  });

  test.each([
    ["takes the run up", "queued → running", 1],
    ["puts the run on hold (approval needed)", "running → waiting_approval", 1],
    ["puts the run on hold (approval needed)", "outcome_unknown → waiting_dependency", 2],
    ["send_refund: attempt 1 failed (transient, payments_unavailable), and more than that", "running → retrying", 3],
  ])("keeps %s, %s within the columns", (what, side, count) => {
    const { texts, narrator } = told();
    narrator.event({ atMs: 99_990, who: "supervisor", what, side });
    const lines = texts.join("").trimEnd().split("\n");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(COLUMNS);
    expect(lines).toHaveLength(count);
  });

  test("breaks long texts before the margin", () => {
    const { texts, narrator } = told();
    narrator.does("mona", "reads what will run ".repeat(20).trim());
    for (const line of texts.join("").split("\n")) expect(line.length).toBeLessThanOrEqual(COLUMNS);
    expect(texts.join("").split("\n").length).toBeGreaterThan(3);
  });
});
