import { z } from "zod";
import { Instant, RunId, SessionId, WorkerId } from "./ids.ts";
import { AgentKind, AgentRef, EffectKind } from "./run.ts";

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
    skewMs: z.number().int().nullable().describe("How far its clock is ahead of the database's, in milliseconds"),
    drainRequestedAt: Instant.nullable().describe("It was asked to give its runs back and to end"),
    drainRequestedBy: z.string().nullable(),
    stayDown: z.boolean().describe("No other is started in its place"),
  })
  .meta({ id: "Worker" });
export type Worker = z.output<typeof Worker>;

/** An agent as its workers have registered it. */
export const Agent = AgentRef.extend({
  kind: AgentKind,
  tools: z.array(z.object({ name: z.string(), description: z.string(), effect: EffectKind })),
}).meta({ id: "Agent" });
export type Agent = z.output<typeof Agent>;

export const Health = z.object({ status: z.literal("up") });

export const Readiness = z.object({
  status: z.enum(["ready", "degraded"]),
  postgres: z.literal("ok"),
  queue: z.enum(["ok", "unavailable"]).describe("Without the queue runs start later; nothing is lost"),
});
