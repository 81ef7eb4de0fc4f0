// The views of the schema `holdpoint`, for the reads.

import type { JsonValue, Verdict } from "@holdpoint/core";
import { bigint, integer, jsonb, text, uuid } from "drizzle-orm/pg-core";
import { holdpoint, instant, tenantId } from "./schema-columns.ts";

/**
 * Every call of a run: those with rows of their own, and those that stand in the steps that asked for them. To find one of
 * the latter all steps of its run are read, so nothing that a worker does at each step reads this. Runs are to be named by
 * their ids: for those that a join finds, the steps of all runs are read.
 */
export const allCalls = holdpoint
  .view("all_calls", {
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
  })
  .existing();
