import type { JsonObject as JsonObjectValue, JsonValue } from "@holdpoint/core";
import { z } from "zod";

const DEEPEST = 64;

/** Any JSON, as what a tool takes or answers. */
export const Json = z.unknown().refine((value) => value !== undefined && isShallow(value), {
  error: `must be JSON, at most ${DEEPEST} levels deep`,
  // What a body's parser or the database gave is JSON; a schema that says so would be recursive.
}) as z.ZodType<JsonValue, JsonValue>;

/** A JSON object, as what a workflow is given. */
export const JsonObject = Json.refine((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
  error: "must be a JSON object",
}) as z.ZodType<JsonObjectValue, JsonObjectValue>;

/** Whether a value ends within the levels that any reader of ours goes down; found without going down by recursion. */
function isShallow(value: unknown): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; depth <= DEEPEST; depth += 1) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
    if (level.length === 0) return true;
  }
  return false;
}
