import type { Logger } from "pino";

/** Where the runtime says what happened: ids, codes and counts, never payloads. */
export type Log = Pick<Logger, "debug" | "info" | "warn" | "error">;

/** How the log names an error. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
