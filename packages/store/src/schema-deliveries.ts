// The tables of webhooks and what they are told, for the reads; see schema.ts.

import type { Outcome, Status } from "@holdpoint/core";
import { integer, jsonb, text, uuid } from "drizzle-orm/pg-core";
import type { Notice } from "./claim-deliveries.ts";
import { holdpoint, instant, tenantId } from "./schema-columns.ts";
import type { NoticePolicy } from "./webhook.ts";

export const webhooks = holdpoint.table("webhooks", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  name: text().notNull(),
  url: text().notNull(),
  secret: text().notNull(),
  policy: text().$type<NoticePolicy>().notNull(),
  agentName: text("agent_name"),
  createdAt: instant("created_at").notNull(),
  createdBy: text("created_by").notNull(),
  changedAt: instant("changed_at").notNull(),
  changedBy: text("changed_by").notNull(),
  disabledAt: instant("disabled_at"),
  disabledBy: text("disabled_by"),
});

export const deliveries = holdpoint.table("deliveries", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  webhookId: uuid("webhook_id").notNull(),
  runId: uuid("run_id").notNull(),
  version: integer().notNull(),
  status: text().$type<Status>().notNull(),
  outcome: text().$type<Outcome["kind"]>(),
  notice: jsonb().$type<Pick<Notice, "agent" | "parent" | "reason" | "waitingFor">>().notNull(),
  state: text().$type<"pending" | "delivered" | "dead" | "dismissed">().notNull(),
  attempts: integer().notNull(),
  nextAt: instant("next_at"),
  lastStatus: integer("last_status"),
  lastErrorCode: text("last_error_code"),
  createdAt: instant("created_at").notNull(),
  deliveredAt: instant("delivered_at"),
});

export const deliveryChanges = holdpoint.table("delivery_changes", {
  tenantId: tenantId(),
  id: uuid().primaryKey(),
  deliveryId: uuid("delivery_id").notNull(),
  runId: uuid("run_id").notNull(),
  change: text().$type<"retried" | "dismissed">().notNull(),
  actorId: text("actor_id").notNull(),
  note: text(),
  at: instant("at").notNull(),
});
