// The tables of schedules and memories, for the reads; see schema.ts.

import type { JsonValue } from "@holdpoint/core";
import { bigint, boolean, integer, jsonb, text, uuid } from "drizzle-orm/pg-core";
import { holdpoint, instant, tenantId } from "./schema-columns.ts";

export const schedules = holdpoint.table("schedules", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  name: text().notNull(),
  agentName: text("agent_name").notNull(),
  agentVersion: text("agent_version").notNull(),
  goal: text().notNull(),
  cron: text(),
  zone: text(),
  onceAt: instant("once_at"),
  overlap: text().$type<"skip" | "queue" | "replace">().notNull(),
  catchUpSlots: integer("catch_up_slots").notNull(),
  catchUpWithinMs: bigint("catch_up_within_ms", { mode: "number" }).notNull(),
  version: integer().notNull(),
  nextSlotAt: instant("next_slot_at"),
  queuedSlotAt: instant("queued_slot_at"),
  lines: uuid().array().notNull(),
  authors: text().array().notNull(),
  createdAt: instant("created_at").notNull(),
  createdBy: text("created_by").notNull(),
  changedAt: instant("changed_at").notNull(),
  changedBy: text("changed_by").notNull(),
  pausedAt: instant("paused_at"),
  pausedBy: text("paused_by"),
  deletedAt: instant("deleted_at"),
  deletedBy: text("deleted_by"),
});

export const scheduleSlots = holdpoint.table("schedule_slots", {
  tenantId: tenantId(),
  scheduleId: uuid("schedule_id").notNull(),
  slotAt: instant("slot_at").notNull(),
  manual: boolean().notNull(),
  state: text().$type<"started" | "skipped" | "queued" | "replaced" | "missed">().notNull(),
  reason: text(),
  earlierRun: uuid("earlier_run"),
  runId: uuid("run_id"),
  sessionId: uuid("session_id"),
  causes: text().array().notNull(),
  startedBy: text("started_by"),
  at: instant("at").notNull(),
});

export const scheduleChanges = holdpoint.table("schedule_changes", {
  tenantId: tenantId(),
  scheduleId: uuid("schedule_id").notNull(),
  version: integer().notNull(),
  change: text().$type<"created" | "changed" | "paused" | "resumed" | "deleted">().notNull(),
  actorId: text("actor_id").notNull(),
  definition: jsonb().$type<Readonly<Record<string, JsonValue>>>(),
  at: instant("at").notNull(),
});

export const memories = holdpoint.table("memories", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  subject: text().notNull(),
  key: text().notNull(),
  value: text().notNull(),
  createdAt: instant("created_at").notNull(),
  createdBy: text("created_by").notNull(),
  expiresAt: instant("expires_at").notNull(),
  deletedAt: instant("deleted_at"),
  deletedBy: text("deleted_by"),
});
