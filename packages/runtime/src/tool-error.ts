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
  /** How long the other side asks to wait, in milliseconds, at most an hour; null if it does not say. */
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

const LONGEST_DELAY_MS = 3_600_000;

/** A delay that somebody outside asks for: never negative or endless, and null where it is no number. */
export function boundedDelay(delayMs: number | null): number | null {
  if (delayMs === null || Number.isNaN(delayMs)) return null;
  return Math.min(LONGEST_DELAY_MS, Math.max(0, Math.ceil(delayMs)));
}
