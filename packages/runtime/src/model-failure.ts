import type { ErrorClass } from "@holdpoint/core";
import { APICallError } from "ai";
import { boundedDelay } from "./tool-error.ts";

/** A model request that failed, classed by status, codes and headers, never by text. */
export interface ModelFailure {
  readonly kind: "failed";
  readonly errorClass: ErrorClass;
  readonly code: string;
  /** How long the provider asks to wait, in milliseconds; null where it does not say. */
  readonly retryAfterMs: number | null;
}

export function failed(errorClass: ErrorClass, code: string, retryAfterMs: number | null = null): ModelFailure {
  return { kind: "failed", errorClass, code, retryAfterMs };
}

/** A stream that ends without a reason was cut off: what it brought so far is no reply. */
export const CUT_OFF = failed("transient", "reply_cut_off");
export const TIMED_OUT = failed("transient", "model_timeout");
/** The same request would be too long again: it is not repeated, a person is asked. */
const PROMPT_TOO_LONG = failed("caller", "prompt_too_long");

/** What providers call it, by whatever status and also within a stream. */
const TOO_LONG_CODES: ReadonlySet<unknown> = new Set([
  "context_length_exceeded",
  "exceed_context_size_error",
  "request_too_large",
  "tokens_limit_reached",
]);

/** Classes what a model request threw, or what its stream brought as an error. */
export function judgeFailure(error: unknown): ModelFailure {
  if (codesOf(error).some((code) => TOO_LONG_CODES.has(code))) return PROMPT_TOO_LONG;
  if (!APICallError.isInstance(error)) {
    const timedOut = error instanceof Error && error.name === "TimeoutError";
    return timedOut ? TIMED_OUT : failed("transient", "model_unreachable");
  }
  const { statusCode, responseHeaders } = error;
  if (statusCode === undefined) return failed("transient", "model_unreachable");
  // It had begun to answer well.
  if (statusCode < 400) return CUT_OFF;
  if (statusCode === 413) return PROMPT_TOO_LONG;
  const code = `http_${statusCode}`;
  if (statusCode === 429 || statusCode === 529) return failed("throttled", code, retryAfterMs(responseHeaders));
  const passing = statusCode >= 500 || statusCode === 408 || statusCode === 409;
  return passing ? failed("transient", code, retryAfterMs(responseHeaders)) : failed("caller", code);
}

/** The codes and types that an error names, in itself or in the provider's answer. */
function codesOf(error: unknown): readonly unknown[] {
  const outer = recordOf(error);
  const data = recordOf(outer.data ?? parsed(outer.responseBody));
  // A stream's last event may name its error within the reply that failed.
  const within = recordOf(recordOf(outer.response).error);
  return [outer, recordOf(outer.error), within, data, recordOf(data.error)].flatMap(({ code, type }) => [code, type]);
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function parsed(body: unknown): unknown {
  try {
    return typeof body === "string" ? JSON.parse(body) : null;
  } catch {
    // A page of a gateway, for example: it names no code.
    return null;
  }
}

/** Retry-After in seconds, or as a date: that one is measured by the reply's own Date, since no clock of ours may judge it. */
function retryAfterMs(headers: Record<string, string> | undefined): number | null {
  const value = headers?.["retry-after"];
  if (value === undefined) return null;
  if (/^\d{1,8}$/.test(value)) return boundedDelay(Number(value) * 1_000);
  const untilMs = httpDateMs(value);
  const sentMs = httpDateMs(headers?.date);
  return untilMs === null || sentMs === null ? null : boundedDelay(untilMs - sentMs);
}

function httpDateMs(value: string | undefined): number | null {
  if (value === undefined || !HTTP_DATE.test(value)) return null;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? null : atMs;
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
