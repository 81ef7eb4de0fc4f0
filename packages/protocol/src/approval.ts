import { APPROVAL_STATES, DECISIONS } from "@holdpoint/core";
import { z } from "zod";
import { ApprovalId, CallId, Instant, RunId, SessionId } from "./ids.ts";
import { Json } from "./json.ts";
import { Approvers, OnDeadline } from "./policy.ts";
import { RULES, Run } from "./run.ts";

export const ApprovalState = z.enum(APPROVAL_STATES);
export const DecisionKind = z.enum(DECISIONS);

const Given = z.object({
  by: z.string(),
  decision: DecisionKind,
  level: z.number().int().describe("The level of escalation at which it was given"),
  at: Instant,
  note: z.string().nullable(),
});

/** An approval request in a list: all but what only whoever decides it needs. */
export const ApprovalSummary = z
  .object({
    id: ApprovalId,
    runId: RunId,
    sessionId: SessionId,
    callId: CallId,
    requester: z.string(),
    tool: z.string(),
    redactedArgs: Json.describe("The arguments, with what need not be seen everywhere left out"),
    argsHash: z.string().describe("Send it back with the decision: it binds the decision to these arguments"),
    amount: z
      .object({ minor: z.string().describe("In the currency's smallest unit"), currency: z.string() })
      .nullable(),
    risk: z.object({ level: z.enum(["low", "medium", "high"]), reversible: z.boolean() }).nullable(),
    rule: z.string().describe("The rule that asks"),
    state: ApprovalState,
    terms: z.object({
      quorum: z.number().int().describe("How many different people have to approve"),
      given: z.number().int().describe("How many have, at the present level"),
      veto: z.boolean().describe("One rejection rejects; otherwise as many as have to approve"),
      fourEyes: z.boolean().describe("Whoever asked for the run, or steers it, may not approve"),
      offered: z.array(DecisionKind),
      validForMs: z.number().int().describe("How long an approval may be spent, in milliseconds"),
    }),
    decided: z.array(Given).describe("Who has decided so far, and how"),
    decisions: z
      .record(DecisionKind, z.enum(RULES).nullable())
      .describe("What this caller may decide: null where it may, otherwise the rule that forbids it"),
    approvers: Approvers.extend({
      excluded: z.array(z.string()).describe("Those who may not approve, whatever roles they have"),
    }).describe("Who is asked now"),
    level: z.number().int().describe("0 for those who were asked first, n for the n-th level of escalation"),
    escalation: z
      .array(Approvers.extend({ deadlineMs: z.number().int() }))
      .describe("Who is asked next, and for how long, in milliseconds"),
    requestedAt: Instant,
    deadline: Instant,
    onDeadline: OnDeadline,
    extended: z.boolean().describe("The deadline has been extended, which happens once"),
    reminders: z.object({ made: z.number().int(), nextAt: Instant.nullable() }),
    editedBy: z.string().nullable().describe("Who changed the arguments that the model had given"),
    decidedAt: Instant.nullable(),
    decidedBy: z.string().nullable(),
    note: z.string().nullable(),
    validUntil: Instant.nullable(),
    spentAt: Instant.nullable(),
    closedAt: Instant.nullable().describe("When it ended without anybody's decision on it"),
    closedReason: z.string().nullable(),
  })
  .meta({ id: "ApprovalSummary" });
export type ApprovalSummary = z.output<typeof ApprovalSummary>;

/** An approval request as the person who decides it must see it. */
export const Approval = ApprovalSummary.extend({
  args: Json.nullable().describe("The arguments as they will run; null for whoever has no part in the request"),
  modelArgs: Json.nullable().describe("What the model had given, where somebody has changed it; null as `args`"),
  modelReason: z
    .string()
    .nullable()
    .describe("UNTRUSTED: what the model wrote when it made the call. Nobody has checked it"),
  evidence: z
    .array(z.object({ tool: z.string(), result: z.string(), excerpt: z.string() }))
    .describe("The run's latest results, the beginnings of them"),
  editSchema: Json.nullable().describe("What edited arguments must look like, as JSON schema; null: no edits"),
  answerSchema: Json.nullable().describe("What an answer must look like, as JSON schema; null: any JSON"),
  answer: Json.nullable().describe("What was answered instead of the call"),
  sameCall: z
    .array(
      z.object({
        id: ApprovalId,
        state: ApprovalState,
        argsHash: z.string(),
        requestedAt: Instant,
        decidedBy: z.string().nullable(),
        note: z.string().nullable(),
        closedReason: z.string().nullable(),
      }),
    )
    .describe("The other requests for the same call, the oldest first"),
  supersededBy: ApprovalId.nullable().describe("The request for what an edit has made of the arguments"),
  equalCalls: z
    .array(
      z.object({
        runId: RunId,
        callId: CallId,
        result: z.string().nullable().describe("How it ended, as the model was told; null: it has not"),
        at: Instant,
      }),
    )
    .describe("Calls of this line of runs with the same tool and arguments"),
}).meta({ id: "Approval" });
export type Approval = z.output<typeof Approval>;

const argsHash = z.string().min(1).max(200).describe("The hash that was shown with the arguments");
const note = z.string().trim().min(1).max(2_000);
const optional = { argsHash, note: note.optional() };
const kind = <Kind extends (typeof DECISIONS)[number]>(name: Kind) => z.literal(name);

/** What may be decided about a request, by its kind; each names the hash that was shown. */
export const DecisionBody = z.discriminatedUnion("decision", [
  z.strictObject({ decision: kind("approve"), ...optional }),
  z.strictObject({
    decision: kind("approve_with_edits"),
    args: Json.describe("The arguments that are to run, all of them"),
    ...optional,
  }),
  z.strictObject({ decision: kind("reject"), argsHash, note: note.describe("Told to the model") }),
  z.strictObject({ decision: kind("reject_and_abort"), argsHash, note }),
  z.strictObject({
    decision: kind("respond"),
    answer: Json.describe("What the model is given as the call's result"),
    ...optional,
  }),
  z.strictObject({ decision: kind("skip"), ...optional }),
  z.strictObject({ decision: kind("escalate"), ...optional }),
]);

/** What a decision has come to. */
export const Decided = z
  .object({
    approval: Approval,
    run: Run,
    repeated: z.boolean().describe("The same person had decided the same before; this is the first answer again"),
  })
  .meta({ id: "Decided" });
