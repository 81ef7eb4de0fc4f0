import { z } from "zod";
import { defineWorkflow } from "../src/define-workflow.ts";

export const worker = { name: "worker", version: "1" };
export const text = z.string();

/** An agent that brings a text, for where only the edges matter. */
export const agent = { kind: "agent", agent: worker, goal: () => "do it", output: text } as const;

/** The refund product's workflow: intake, policy, refund, a letter that is reviewed, and a signature. */
export const refund = defineWorkflow({
  name: "refund",
  version: "1",
  input: z.object({ orderId: z.string() }),
  nodes: {
    intake: {
      kind: "agent",
      agent: { name: "intake", version: "1" },
      goal: ({ input }) => `Find out what is wrong with order ${input.orderId}`,
      output: z.object({ amountCents: z.number().int(), reason: z.string() }),
    },
    policy: {
      kind: "gate",
      gate: "go_no_go",
      after: ["intake"],
      judge: (scope) => {
        const { amountCents } = scope.need("intake");
        return { pass: amountCents <= 50_000, feedback: `${amountCents} is above the limit of 50000` };
      },
      otherwise: "block",
    },
    pay: {
      kind: "tool",
      tool: { name: "refund", input: z.object({ orderId: z.string(), amountCents: z.number().int() }) },
      after: ["policy"],
      input: (scope) => ({ orderId: scope.input.orderId, amountCents: scope.need("intake").amountCents }),
      output: z.object({ refundId: z.string() }),
    },
    letter: {
      kind: "agent",
      agent: { name: "writer", version: "1" },
      after: ["pay"],
      goal: ({ feedback, previous }) =>
        feedback === null ? "Write to the customer" : `Write "${previous?.text}" again: ${feedback.text}`,
      output: z.object({ text: z.string() }),
    },
    quality: {
      kind: "gate",
      gate: "feedback",
      after: ["letter"],
      judge: (scope) => ({ pass: scope.need("letter").text.startsWith("Dear"), feedback: "be polite" }),
      rework: "letter",
    },
    sign: {
      kind: "human",
      after: ["quality"],
      question: () => "Send this letter?",
      show: (scope) => ({ letter: scope.need("letter").text, refund: scope.output("pay")?.refundId ?? null }),
      approvers: { roles: ["support_lead"] },
      deadlineMs: 3_600_000,
      output: z.object({ signature: z.string() }),
    },
  },
  output: z.object({ letter: z.string(), signedBy: z.string().nullable() }),
  result: (scope) => ({
    letter: scope.need("letter").text,
    signedBy: scope.output("sign")?.answer?.signature ?? null,
  }),
});
