import type { Call, ErrorClass, JsonObject, JsonValue } from "@holdpoint/core";
import { showId } from "@holdpoint/store";
import type { LookUp, Tool, ToolContext } from "./define-tool.ts";
import { ToolError } from "./tool-error.ts";

/** How one try of a call ended. */
export type TryOutcome =
  | { readonly kind: "done"; readonly output: JsonValue; readonly externalRef: string | null }
  | {
      readonly kind: "failed";
      readonly errorClass: Exclude<ErrorClass, "unknown_outcome">;
      readonly code: string;
      readonly message: string;
      readonly retryAfterMs: number | null;
    }
  /** An effect of which nobody knows whether it acted. */
  | { readonly kind: "unknown"; readonly code: string }
  /** A read that was stopped: nothing happened, and nothing is kept. */
  | { readonly kind: "aborted" };

export interface Try {
  readonly tool: Tool;
  readonly call: Call;
  readonly attempt: number;
  readonly runId: string;
  readonly requester: string;
  /** Ends reads early; an effect is left to end within its deadline. */
  readonly stop: AbortSignal;
  /** What is left until the call's deadline, in milliseconds. */
  readonly remainingMs: number;
}

/**
 * Executes a call once, with its frozen arguments. A tool that does not come back by its deadline is waited for no
 * longer: an effect's outcome is then unknown, a read's try has failed.
 */
export async function executeCall(attempt: Try): Promise<TryOutcome> {
  const isRead = attempt.call.effect.kind === "read";
  const deadline = AbortSignal.timeout(Math.max(1, Math.ceil(attempt.remainingMs)));
  const signal = isRead ? AbortSignal.any([attempt.stop, deadline]) : deadline;
  try {
    const work = attempt.tool.execute(argsOf(attempt.call), contextOf(attempt, signal));
    const output = await untilAborted(work, signal);
    return { kind: "done", output, externalRef: attempt.tool.externalRef(output) };
  } catch (error) {
    if (isRead && attempt.stop.aborted) return { kind: "aborted" };
    const code = codeOf(error, deadline);
    if (error instanceof ToolError && error.errorClass !== "unknown_outcome") {
      const { errorClass, message, retryAfterMs } = error;
      return { kind: "failed", errorClass, code, message, retryAfterMs };
    }
    if (!isRead) return { kind: "unknown", code };
    return { kind: "failed", errorClass: "transient", code, message: "The tool did not answer.", retryAfterMs: null };
  }
}

/** Asks a tool's look-up what became of an operation. A look-up that fails says nothing. */
export async function lookUp(attempt: Try): Promise<{ found: LookUp<JsonValue>; externalRef: string | null }> {
  const signal = AbortSignal.any([attempt.stop, AbortSignal.timeout(attempt.call.timeoutMs)]);
  try {
    const work = attempt.tool.reconcile(argsOf(attempt.call), contextOf(attempt, signal));
    const found = await untilAborted(work, signal);
    return { found, externalRef: found.answer === "happened" ? attempt.tool.externalRef(found.output) : null };
  } catch {
    // Every error means the same here: it is not known, and the look-up is repeated until its own end.
    return { found: { answer: "unknown" }, externalRef: null };
  }
}

function contextOf({ call, attempt, runId, requester, remainingMs }: Try, signal: AbortSignal): ToolContext {
  return {
    operationId: call.operationId,
    attempt,
    signal,
    timeoutMs: Math.max(1, Math.ceil(remainingMs)),
    runId: showId("run", runId),
    requester,
  };
}

function argsOf(call: Call): JsonObject {
  // Frozen as the object that the tool's input schema gave.
  return call.args as JsonObject;
}

/** The work's own end, or the signal's, whichever comes first: a tool that ignores its signal does not hold the run. */
async function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  // What an abandoned tool still does is settled by the attempt that stays open; its rejection has no reader any more.
  work.catch(() => undefined);
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function codeOf(error: unknown, deadline: AbortSignal): string {
  if (error instanceof ToolError) return error.code;
  return deadline.aborted ? "timeout" : "unexpected_error";
}
