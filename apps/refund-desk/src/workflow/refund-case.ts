import { defineWorkflow } from "@holdpoint/workflow";
import { z } from "zod";
import { formatMoney } from "../money.ts";
import { FindOrderInput } from "../tool-inputs.ts";
import { QuoteRefundOutput, SendRefundOutput } from "../tool-outputs.ts";
import { findMissing, type Letter, letterGoal } from "./letter.ts";

/** What a case is opened with. */
export const RefundCaseInput = z.object({
  ...FindOrderInput.shape,
  message: z.string().min(1).max(500).describe("What the customer wrote"),
});

/** What a case comes to. */
export const RefundCaseOutput = z.object({
  refund: SendRefundOutput,
  letter: z.string(),
  signedOff: z.boolean().describe("A manager has released the letter"),
});

/**
 * A refund as a workflow: an agent takes the case in, the policy lets it through or ends it, the refund desk pays, a writer
 * drafts the closing letter until it names everything, and a manager signs it off.
 */
export const REFUND_CASE = defineWorkflow({
  name: "refund-case",
  version: "1",
  input: RefundCaseInput,
  nodes: {
    intake: {
      kind: "agent",
      agent: { name: "refund-intake", version: "1" },
      goal: ({ input }) => `Take in order ${input.order_id} of ${input.email}: ${input.message}`,
      output: QuoteRefundOutput,
    },
    policy: {
      kind: "gate",
      gate: "go_no_go",
      after: ["intake"],
      judge: ({ need }) => ({ pass: need("intake").refundable, feedback: need("intake").why }),
      otherwise: "block",
    },
    refund: {
      kind: "agent",
      agent: { name: "refund-desk", version: "1" },
      after: ["policy"],
      goal: ({ input }) => `Please refund order ${input.order_id}: ${input.message} I am ${input.email}`,
      output: SendRefundOutput,
    },
    letter: {
      kind: "agent",
      agent: { name: "refund-writer", version: "1" },
      after: ["refund"],
      goal: ({ need, feedback }) => letterGoal(aboutOf(need("refund")), feedback?.text ?? null),
      output: z.string(),
    },
    quality: {
      kind: "gate",
      gate: "feedback",
      after: ["letter"],
      judge: ({ need }) => {
        const missing = findMissing(need("letter"), aboutOf(need("refund")));
        return { pass: missing === null, feedback: missing ?? "complete" };
      },
      rework: "letter",
    },
    "sign-off": {
      kind: "human",
      after: ["quality"],
      question: ({ input }) => `Close the case of order ${input.order_id} with this letter?`,
      show: ({ need }) => ({ refund: need("refund"), letter: need("letter") }),
      approvers: { roles: ["manager"] },
      onDeadline: "operator",
    },
  },
  output: RefundCaseOutput,
  result: ({ need }) => ({
    refund: need("refund"),
    letter: need("letter"),
    signedOff: need("sign-off").decision === "approved",
  }),
});

function aboutOf({ order_id, refund_id, amount_minor, currency }: SendRefundOutput): Letter {
  return { orderId: order_id, refundId: refund_id, amount: formatMoney(amount_minor, currency) };
}
