import type { ErrorClass } from "@holdpoint/core";

/**
 * A tool's failure, classed by what is known of its effect. Any other error that an effect throws counts as
 * `unknown_outcome`: nobody knows whether the other side acted.
 */
export class ToolError extends Error {
  override readonly name = "ToolError";
  /** `transient`, `throttled`: nothing happened, another try may help. `refused`, `caller`: nothing happened, nor will it. */
  readonly errorClass: ErrorClass;
  /** A stable code, for logs and for the model. */
  readonly code: string;
  /** How long the other side asks to wait, in milliseconds, at most seven days; null if it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    fields: { readonly errorClass: ErrorClass; readonly code: string; readonly retryAfterMs?: number | null },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.errorClass = fields.errorClass;
    this.code = fields.code;
    this.retryAfterMs = boundedDelay(fields.retryAfterMs ?? null);
  }
}

/** Nothing is sent earlier than the other side allows; beyond this it is a mistake. */
const LONGEST_DELAY_MS = 7 * 86_400_000;

/**
 * A delay that somebody outside asks for: never endless, and null where it is no number, or no delay: who turns a call
 * away and asks for no wait does not say how long.
 */
export function boundedDelay(delayMs: number | null): number | null {
  if (delayMs === null || Number.isNaN(delayMs) || delayMs <= 0) return null;
  return Math.min(LONGEST_DELAY_MS, Math.ceil(delayMs));
}

/** What Node and its fetch call a connection that could not be made, or that broke. */
const NETWORK_CODES: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_SOCKET",
]);

const CAUSES_READ = 5;

/** Whether an error, or one that caused it, says by its code that the other side could not be reached. */
export function isUnreachable(error: unknown): boolean {
  let each = error;
  for (let depth = 0; depth < CAUSES_READ && each instanceof Error; depth += 1) {
    if ("code" in each && NETWORK_CODES.has(each.code)) return true;
    each = each.cause;
  }
  return false;
}
