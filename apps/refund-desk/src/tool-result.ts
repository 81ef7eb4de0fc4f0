import { z } from "zod";

/** A tool result as the run's steps hold it. `result` says how the call ended, `output` is what the model is told. */
export interface ToolResult {
  readonly tool: string;
  readonly result: string;
  readonly output: unknown;
}

/** How a call ended, in one word: `null` when the tool did what it was asked, else why not. */
export type FailureCode = string | null;

/** The call did not fit its tool's input; another input may. */
export const INVALID = "invalid";
/** The provider had accepted the refund and could not pay it out. */
export const REFUND_FAILED = "refund_failed";
/** The people who were asked for their approval said no. */
export const REJECTED = "rejected";
/** Nobody decided in time. */
export const EXPIRED = "expired";
/** Nobody knows whether an equal call before acted. */
export const NOT_ESTABLISHED = "not_established";

/** A person's answer in the place of a call is as good as the tool's own. */
const DONE: readonly string[] = ["succeeded", "answered", "answered_from_record"];
const WithCode = z.object({ code: z.string() });
const WithResult = z.object({ result: z.string() });

/** Why a result is not what the tool was asked for; a failed tool gives its own code. */
export function failureOf({ result, output }: ToolResult): FailureCode {
  if (DONE.includes(result)) return null;
  return result === "failed" ? readFailure(output) : result;
}

/** The code of an error value: its `code`, its `result`, or `failed`. */
export function readFailure(value: unknown): string {
  const withCode = WithCode.safeParse(value);
  if (withCode.success) return withCode.data.code;
  const withResult = WithResult.safeParse(value);
  return withResult.success ? withResult.data.result : "failed";
}
