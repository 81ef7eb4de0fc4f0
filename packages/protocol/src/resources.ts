import { z } from "zod";
import { ApprovalId, CallId, Instant, RunId, SessionId, WorkerId } from "./ids.ts";
import { Json } from "./json.ts";
import { AgentRef, Run } from "./run.ts";

/** One conversation. */
export const Session = z.object({ id: SessionId, requester: z.string(), createdAt: Instant }).meta({ id: "Session" });
export type Session = z.output<typeof Session>;

/** Something that was said in a session. */
export const Message = z
  .object({
    seq: z.number().int(),
    role: z.enum(["user", "assistant"]),
    author: z.string(),
    text: z.string(),
    runId: RunId.nullable(),
    at: Instant,
  })
  .meta({ id: "Message" });
export type Message = z.output<typeof Message>;

export const ApprovalState = z.enum(["pending", "approved", "rejected", "expired", "withdrawn", "spent"]);

/** An approval request as the person who decides it must see it. */
export const Approval = z
  .object({
    id: ApprovalId,
    runId: RunId,
    sessionId: SessionId,
    requester: z.string(),
    callId: CallId,
    tool: z.string(),
    args: Json.describe("The arguments as they will run"),
    argsHash: z.string().describe("Send it back with the decision: it binds the decision to these arguments"),
    rule: z.string(),
    approvers: z.object({ roles: z.array(z.string()), users: z.array(z.string()), excluded: z.array(z.string()) }),
    state: ApprovalState,
    requestedAt: Instant,
    deadline: Instant,
    onDeadline: z.string(),
    decidedAt: Instant.nullable(),
    decidedBy: z.string().nullable(),
    note: z.string().nullable(),
    validUntil: Instant.nullable(),
    spentAt: Instant.nullable(),
  })
  .meta({ id: "Approval" });
export type Approval = z.output<typeof Approval>;

/** What a decision has come to. */
export const Decided = z
  .object({
    approval: Approval,
    run: Run,
    repeated: z.boolean().describe("The same person had decided the same before; this is the first answer again"),
  })
  .meta({ id: "Decided" });

/** One process incarnation that owns runs, or did. */
export const Worker = z
  .object({
    id: WorkerId,
    host: z.string(),
    pid: z.number().int(),
    agents: z.array(AgentRef),
    slots: z.number().int(),
    ownedRuns: z.number().int(),
    startedAt: Instant,
    leaseUntil: Instant,
    silent: z.boolean().describe("Its lease is over, and nobody has declared it gone yet"),
    goneAt: Instant.nullable(),
    goneReason: z.string().nullable(),
  })
  .meta({ id: "Worker" });
export type Worker = z.output<typeof Worker>;

/** An agent as its workers have registered it. */
export const Agent = AgentRef.extend({ tools: Json }).meta({ id: "Agent" });
export type Agent = z.output<typeof Agent>;

export const Health = z.object({ status: z.literal("up") });

export const Readiness = z.object({
  status: z.enum(["ready", "degraded"]),
  postgres: z.literal("ok"),
  queue: z.enum(["ok", "unavailable"]).describe("Without the queue runs start later; nothing is lost"),
});
