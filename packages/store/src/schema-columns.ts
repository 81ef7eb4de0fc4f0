import type { JsonValue, Verdict } from "@holdpoint/core";
import { bigint, integer, jsonb, pgSchema, text, timestamp, uuid } from "drizzle-orm/pg-core";

/** The schema of all tables. */
export const holdpoint = pgSchema("holdpoint");
/** A column of instants. */
export const instant = (column: string) => timestamp(column, { withTimezone: true });
/** To whom a row belongs. */
export const tenantId = () => uuid("tenant_id").notNull();
/** What a call is, wherever it stands. */
export const callColumns = () => ({
  tenantId: tenantId(),
  runId: uuid("run_id").notNull(),
  id: uuid().notNull(),
  turn: integer().notNull(),
  ordinal: integer().notNull(),
  toolCallId: text("tool_call_id").notNull(),
  tool: text().notNull(),
  args: text().notNull(),
  argsHash: text("args_hash").notNull(),
  operationId: text("operation_id").notNull(),
  effect: jsonb().$type<JsonValue>().notNull(),
  verdict: jsonb().$type<Verdict>().notNull(),
  timeoutMs: integer("timeout_ms").notNull(),
  retries: integer().notNull(),
  at: instant("at").notNull(),
  service: text().notNull(),
  throttledForMs: bigint("throttled_for_ms", { mode: "number" }).notNull(),
});
