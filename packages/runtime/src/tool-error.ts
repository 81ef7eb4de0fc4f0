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
  /** How long the other side asks to wait, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    fields: { readonly errorClass: ErrorClass; readonly code: string; readonly retryAfterMs?: number | null },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.errorClass = fields.errorClass;
    this.code = fields.code;
    this.retryAfterMs = fields.retryAfterMs ?? null;
  }
}
