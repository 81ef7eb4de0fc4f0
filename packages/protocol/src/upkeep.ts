import { z } from "zod";
import { Instant, RunId } from "./ids.ts";

/** One thing that maintenance does, or would do. */
export const MaintenanceAction = z
  .object({
    kind: z.string().describe("The sweep that does it"),
    runId: RunId.nullable(),
    subject: z
      .object({ kind: z.string(), id: z.string() })
      .nullable()
      .describe("What else it is about: an agent, a request, an artifact, a schedule, a session"),
  })
  .meta({ id: "MaintenanceAction" });
export type MaintenanceAction = z.output<typeof MaintenanceAction>;

/** What maintenance has found, and done if it was told to. */
export const Maintenance = z
  .object({
    actions: z.array(MaintenanceAction).describe("The same on the same state, whether they are done or only shown"),
    unreadable: z
      .array(z.string())
      .describe("What could not be read: nobody knows whether something is to be done there"),
    applied: z
      .object({
        followUps: z.array(MaintenanceAction).describe("What was found after that, and done as well: the first of it"),
        followed: z.number().int().describe("How much that was, all of it"),
        left: z.array(MaintenanceAction).describe("What is still to be done: it failed, or the time was over"),
        failed: z.array(z.object({ kind: z.string(), count: z.number().int(), error: z.string() })),
      })
      .nullable()
      .describe("Null: it was only looked"),
  })
  .meta({ id: "Maintenance" });
export type Maintenance = z.output<typeof Maintenance>;

/** Something about the fleet that is not as it should be. */
export const AuditFinding = z
  .object({
    code: z.string(),
    severity: z.enum(["error", "warning"]),
    runId: RunId.nullable(),
    subject: z.string().nullable().describe("What else it is about: a request, a child, an agent, a service, a rule"),
    says: z.string(),
    mend: z.string().describe("The command that mends it, or shows what has to be decided"),
    since: Instant.nullable(),
    ageMs: z.number().int().nullable(),
  })
  .meta({ id: "AuditFinding" });
export type AuditFinding = z.output<typeof AuditFinding>;

/** What is left of a run that was removed. */
export const Tombstone = z
  .object({
    runId: RunId,
    line: RunId,
    parent: RunId.nullable(),
    agent: z.object({ name: z.string(), version: z.string() }),
    requester: z.string(),
    status: z.enum(["completed", "failed", "cancelled"]),
    outcome: z.string().nullable(),
    endedAt: Instant,
    removedAt: Instant,
    effects: z
      .array(
        z.object({
          operationId: z.string(),
          externalRef: z.string().nullable(),
          tool: z.string(),
          outcome: z.string().nullable(),
          at: Instant,
          failedAt: Instant.nullable().describe("When the other side said that it has failed after all"),
        }),
      )
      .describe("By the last attempt of each"),
  })
  .meta({ id: "Tombstone" });
export type Tombstone = z.output<typeof Tombstone>;

/** How long runs are kept after their end, in days; and their tombstones after that. */
const days = z.number().int().min(1).max(36_500);
export const Retention = z
  .object({
    succeededDays: days,
    partialDays: days,
    blockedDays: days,
    failedDays: days,
    cancelledDays: days,
    tombstoneDays: days,
  })
  .meta({ id: "Retention" });
export type Retention = z.output<typeof Retention>;
