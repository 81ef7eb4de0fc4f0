import { DECISIONS } from "@holdpoint/core";
import { z } from "zod";
import { Instant } from "./ids.ts";
import { Json } from "./json.ts";
import { AgentRef } from "./run.ts";

const argument = z.string().min(1).max(200).describe("The argument's name; dots lead into objects, numbers into lists");
const decimal = z.union([z.number(), z.string()]).refine((value) => /^-?\d{1,40}(\.\d{1,40})?$/.test(String(value)), {
  error: "must be a decimal number, as a number or as text: nothing else has an order",
});

/** One condition on a call's arguments. What cannot be judged (a missing amount, a word in its place) counts as met. */
const Condition = z.discriminatedUnion("is", [
  z.strictObject({ argument, is: z.enum(["=", "!="]), value: Json }),
  z.strictObject({ argument, is: z.enum([">", ">=", "<", "<="]), value: decimal }),
  z.strictObject({ argument, is: z.literal("in"), value: z.array(Json).min(1).max(1_000) }),
]);

const toolName = z.string().min(1).max(200);
const ruleName = z.string().regex(/^[a-z][a-z0-9_]{0,99}$/, { error: "must be a word like over_limit" });

/** A rule that forbids calls, as an operator gives it. */
export const NewDenyRule = z.strictObject({
  name: ruleName.describe("Names the rule in refusals and in the history"),
  tools: z.array(toolName).min(1).max(100).describe("`*` is every tool"),
  when: z.array(Condition).max(20).default([]).describe("All of them must be met; none: every call of the tools"),
  message: z.string().trim().min(1).max(1_000).describe("Told to the model"),
});

/** Who may decide. */
export const Approvers = z.object({ roles: z.array(z.string()), users: z.array(z.string()) });

/** What happens when nobody has decided in time. */
export const OnDeadline = z.enum(["reject", "abort", "operator", "escalate", "extend"]);

/** Who has to release a call, how many of them, until when, and what happens otherwise. */
const Terms = z.object({
  approvers: Approvers,
  quorum: z.number().int(),
  veto: z.boolean(),
  fourEyes: z.boolean(),
  decisions: z.array(z.enum(DECISIONS)),
  answerSchema: Json.nullable(),
  deadlineMs: z.number().int(),
  onDeadline: OnDeadline,
  remindAfterMs: z.array(z.number().int()),
  escalation: z.array(z.object({ approvers: Approvers, deadlineMs: z.number().int() })),
  validForMs: z.number().int(),
});

const about = {
  name: z.string(),
  tools: z.array(z.string()),
  when: z.array(z.object({ argument: z.string(), is: z.enum(["=", "!=", ">", ">=", "<", "<=", "in"]), value: Json })),
};
const DenyRule = z.object({ ...about, action: z.literal("deny"), message: z.string() });

/** A rule about tool calls, as data. */
const PolicyRule = z.discriminatedUnion("action", [
  z.object({ ...about, action: z.literal("ask"), approval: Terms }),
  DenyRule,
]);

/** A rule that an operator has put in force. */
export const Denial = z
  .object({ rule: DenyRule, reason: z.string(), createdBy: z.string(), createdAt: Instant })
  .meta({ id: "Denial" });
export type Denial = z.output<typeof Denial>;

/** Every rule that is in force: the agents' own, and what operators have forbidden. */
export const Rules = z
  .object({
    registered: z
      .array(z.object({ agent: AgentRef, rule: PolicyRule }))
      .describe("The rules of each agent's tools; of one agent the first that asks decides, and a denial always wins"),
    denials: z.array(Denial).describe("What operators have forbidden, the oldest first"),
  })
  .meta({ id: "Rules" });
export type Rules = z.output<typeof Rules>;

/** What would become of a call. */
export const Verdict = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("allowed") }),
    z.object({ kind: z.literal("needs_approval"), rule: z.string(), approval: Terms }),
    z.object({ kind: z.literal("denied"), rule: z.string(), message: z.string() }),
    z.object({ kind: z.literal("invalid"), message: z.string().describe("What the tool would not take") }),
  ])
  .meta({ id: "Verdict" });
export type Verdict = z.output<typeof Verdict>;

export const TestedCall = z.strictObject({ agent: AgentRef.strict(), tool: toolName, args: Json });

export const DenyBody = z.strictObject({ rule: NewDenyRule, reason: z.string().trim().min(1).max(1_000) });

/** A denial that is in force from now on. */
export const Denied = z.object({
  denial: Denial,
  unknownTools: z
    .array(z.string())
    .describe("Tools of the rule that no registered agent has: misspelt, or yet to come"),
});

export const LiftBody = z.strictObject({ name: z.string().min(1).max(100) });
