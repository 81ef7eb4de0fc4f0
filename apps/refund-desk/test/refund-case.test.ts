import { bindWorkflow } from "@holdpoint/runtime";
import { decide, type Execution } from "@holdpoint/workflow";
import { describe, expect, test } from "vitest";
import { draftLetter, REFUND_CASE } from "../src/index.ts";
import { findMissing, letterGoal } from "../src/workflow/letter.ts";

const LETTER = { orderId: "ord_4412", refundId: "re_1", amount: "EUR 34.00" };
const said = (goal: string): string => {
  const next = draftLetter({ customerTexts: [goal], calls: [] });
  return "say" in next ? next.say : "";
};

describe("the closing letter", () => {
  test("is sent back for what its first draft forgets, and complete after that", () => {
    const first = said(letterGoal(LETTER, null));
    const missing = findMissing(first, LETTER);
    expect(missing).toBe("it does not name the refund's reference (re_1)");
    const second = said(letterGoal(LETTER, missing));
    expect(second).toBe("Dear customer, we have refunded EUR 34.00 for order ord_4412. Reference: re_1.");
    expect(findMissing(second, LETTER)).toBeNull();
  });
});

const QUOTE = {
  order_id: "ord_4412",
  payment_intent: "pi_1",
  amount_minor: "3400",
  order_total_minor: "3400",
  currency: "eur",
  needs_manager: false,
};
const INPUT = { order_id: "ord_4412", email: "jonas@example.com", message: "It is broken." };
const REFUND = { order_id: "ord_4412", refund_id: "re_1", status: "succeeded", amount_minor: "3400", currency: "eur" };

/** What the graph decides after these nodes have brought this. */
function after(brought: Readonly<Record<string, unknown>>) {
  const executions = Object.entries(brought).map(([node, output], index): Execution => {
    const place = { callId: `call_${index}`, node, round: 1, item: null };
    return { ...place, state: "done", result: "succeeded", output: output as Execution["output"], message: null };
  });
  return decide(REFUND_CASE, { input: INPUT, executions, choices: [] });
}

describe("the refund case", () => {
  test("needs no tools but those of its agents", () => {
    expect([...bindWorkflow(REFUND_CASE).tools.keys()]).toEqual(["intake", "refund", "letter", "sign-off"]);
  });

  test("starts with the intake, which is told what the customer wrote", () => {
    expect(after({})).toMatchObject({
      do: "start",
      nodes: [{ node: "intake", goal: "Take in order ord_4412 of jonas@example.com: It is broken." }],
    });
  });

  test("is blocked by the policy where the quote refuses, and nothing is paid", () => {
    const refused = { refundable: false, order_id: "ord_4412", reason: "too_late", why: "It is too late." };
    const policy = after({ intake: refused });
    expect(policy).toMatchObject({ do: "start", nodes: [{ node: "policy", settled: { output: { pass: false } } }] });
    expect(after({ intake: refused, policy: { pass: false, feedback: "It is too late." } })).toMatchObject({
      do: "end",
      outcome: { kind: "blocked", step: "policy" },
    });
  });

  test("sends a letter back that does not name everything", () => {
    const letter = said(letterGoal(LETTER, null));
    const upTo = {
      intake: { refundable: true, why: "in time", ...QUOTE },
      policy: { pass: true, feedback: "in time" },
    };
    expect(after({ ...upTo, refund: REFUND, letter })).toMatchObject({
      nodes: [{ node: "quality", settled: { output: { pass: false } } }],
    });
    const sentBack = { pass: false, feedback: "it does not name the refund's reference (re_1)" };
    expect(after({ ...upTo, refund: REFUND, letter, quality: sentBack })).toMatchObject({
      do: "start",
      nodes: [{ node: "letter", round: 2, goal: expect.stringContaining("sent back: it does not name") }],
    });
  });
});
