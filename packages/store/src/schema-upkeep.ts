// What is kept for its time: artifacts, keys, and what is left of runs.

import type { JsonValue, Status } from "@holdpoint/core";
import { integer, jsonb, text, uuid } from "drizzle-orm/pg-core";
import { holdpoint, instant, tenantId } from "./schema-columns.ts";

export const artifacts = holdpoint.table("artifacts", {
  tenantId: tenantId(),
  sha256: text().notNull(),
  sizeBytes: integer("size_bytes").notNull(),
  mediaType: text("media_type").notNull(),
  content: text().notNull(),
  createdAt: instant("created_at").notNull(),
  looseSince: instant("loose_since"),
});

export const idempotencyKeys = holdpoint.table("idempotency_keys", {
  tenantId: tenantId(),
  principal: text().notNull(),
  key: text().notNull(),
  requestHash: text("request_hash").notNull(),
  runId: uuid("run_id").notNull(),
  createdAt: instant("created_at").notNull(),
});

export const artifactUses = holdpoint.table("artifact_uses", {
  tenantId: tenantId(),
  runId: uuid("run_id").notNull(),
  sha256: text().notNull(),
});

export const retention = holdpoint.table("retention", {
  tenantId: uuid("tenant_id").primaryKey(),
  succeededDays: integer("succeeded_days").notNull(),
  partialDays: integer("partial_days").notNull(),
  blockedDays: integer("blocked_days").notNull(),
  failedDays: integer("failed_days").notNull(),
  cancelledDays: integer("cancelled_days").notNull(),
  tombstoneDays: integer("tombstone_days").notNull(),
  changedAt: instant("changed_at").notNull(),
  changedBy: text("changed_by").notNull(),
});

export const tombstones = holdpoint.table("tombstones", {
  tenantId: tenantId(),
  runId: uuid("run_id").primaryKey(),
  line: uuid().notNull(),
  parent: uuid(),
  agentName: text("agent_name").notNull(),
  agentVersion: text("agent_version").notNull(),
  requester: text().notNull(),
  status: text().$type<Status>().notNull(),
  outcome: text(),
  endedAt: instant("ended_at").notNull(),
  removedAt: instant("removed_at").notNull(),
  effects: jsonb().$type<JsonValue>().notNull(),
});
