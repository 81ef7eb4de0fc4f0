import { describe, expect, test } from "vitest";
import { localTimes, money, tell, timeOfDay } from "../src/demo/in-words.ts";
import { openNarrator } from "../src/demo/narrator.ts";

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

test("money has two decimals", () => {
  expect(money(18_401, "eur")).toBe("EUR 184.01");
  expect(money(5, "usd")).toBe("USD 0.05");
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

  test("breaks long texts before the margin", () => {
    const { texts, narrator } = told();
    narrator.does("mona", "reads what will run ".repeat(20).trim());
    for (const line of texts.join("").split("\n")) expect(line.length).toBeLessThanOrEqual(120);
    expect(texts.join("").split("\n").length).toBeGreaterThan(3);
  });
});
