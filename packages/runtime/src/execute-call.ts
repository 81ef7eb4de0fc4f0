import type { Call, ClosedService, ErrorClass, JsonObject, JsonValue } from "@holdpoint/core";
import { showId } from "@holdpoint/store";
import type { Storable } from "./codec.ts";
import { type Deadline, openDeadline } from "./deadline.ts";
import type { LookUp, Settled, Tool, ToolContext } from "./define-tool.ts";
import { isUnreachable, ToolError } from "./tool-error.ts";

/** What an answer, or the lack of one, says of the service behind a tool or a model. */
export interface ServiceTrouble {
  readonly reason: ClosedService["reason"];
  /** How long it asks to wait, in milliseconds; null if it does not say. */
  readonly retryAfterMs: number | null;
}

/** How one try of a call ended. */
export type TryOutcome =
  | { readonly kind: "done"; readonly output: Storable; readonly externalRef: string | null }
  | {
      readonly kind: "failed";
      readonly errorClass: Exclude<ErrorClass, "unknown_outcome">;
      readonly code: string;
      readonly message: string;
      readonly retryAfterMs: number | null;
      readonly trouble: ServiceTrouble | null;
    }
  /** An effect of which nobody knows whether it acted. */
  | {
      readonly kind: "unknown";
      readonly code: string;
      readonly trouble: ServiceTrouble | null;
      /** The end of a tool that is waited for no longer; null where it has ended. */
      readonly afterwards: Promise<LateOutcome | null> | null;
    }
  /** A read that was stopped: nothing happened, and nothing is kept. */
  | { readonly kind: "aborted" };

/** What a tool brings home after its call was given up. */
export type LateOutcome = Extract<TryOutcome, { kind: "done" | "failed" }>;

export interface Try {
  readonly tool: Tool;
  readonly call: Call;
  readonly attempt: number;
  readonly runId: string;
  readonly requester: string;
  /** Ends reads early, and effects of abortable tools; any other is left to end within its deadline. */
  readonly stop: AbortSignal;
  /** What is left until the call's deadline, in milliseconds. */
  readonly remainingMs: number;
}

/**
 * Executes a call once, with its frozen arguments. A tool that does not come back in time is waited for no longer: an
 * effect's outcome is then unknown, and what it brings afterwards is given with that; a read's try has failed.
 */
export async function executeCall(attempt: Try): Promise<TryOutcome> {
  const isRead = attempt.call.effect.kind === "read";
  const deadline = openDeadline(attempt.remainingMs, isRead || attempt.tool.abortable ? attempt.stop : null);
  const ended = execute(attempt, deadline);
  const outcome = await deadline.race(ended);
  deadline.end();
  if (outcome !== null) return isRead && attempt.stop.aborted && outcome.kind !== "done" ? ABORTED : outcome;
  if (isRead) return attempt.stop.aborted ? ABORTED : NOT_IN_TIME;
  const afterwards = ended.then((late) => (late.kind === "done" || late.kind === "failed" ? late : null));
  return deadline.isOver()
    ? { kind: "unknown", code: TIMEOUT, trouble: UNAVAILABLE, afterwards }
    : { kind: "unknown", code: "stopped", trouble: null, afterwards };
}

const TIMEOUT = "timeout";
const ABORTED = { kind: "aborted" } as const;
const UNAVAILABLE: ServiceTrouble = { reason: "unavailable", retryAfterMs: null };
const NO_ANSWER = {
  kind: "failed",
  errorClass: "transient",
  message: "The tool did not answer.",
  retryAfterMs: null,
} as const;
const NOT_IN_TIME: TryOutcome = { ...NO_ANSWER, code: TIMEOUT, trouble: UNAVAILABLE };

/** The tool's own end, whenever that comes; never rejects. */
async function execute(attempt: Try, deadline: Deadline): Promise<TryOutcome> {
  try {
    const output = await attempt.tool.execute(argsOf(attempt.call), contextOf(attempt, deadline.signal));
    return { kind: "done", output, externalRef: attempt.tool.externalRef(output) };
  } catch (error) {
    const code = codeOf(error, deadline);
    const trouble = troubleOf(error, deadline);
    if (error instanceof ToolError && error.errorClass !== "unknown_outcome") {
      const { errorClass, message, retryAfterMs } = error;
      return { kind: "failed", errorClass, code, message, retryAfterMs, trouble };
    }
    if (attempt.call.effect.kind === "read") return { ...NO_ANSWER, code, trouble };
    return { kind: "unknown", code, trouble, afterwards: null };
  }
}

/** A tool's answer to a question about an effect. */
interface Asked<Answer> {
  readonly answer: Answer;
  /** The tool did not answer, or not in time. */
  readonly failed: boolean;
  readonly trouble: ServiceTrouble | null;
}

/** What a poll brought. */
export type Polled = Asked<Settled<Storable>>;

/** Asks a tool's look-up what became of an operation. A look-up that fails says nothing of it. */
export async function lookUp(attempt: Try): Promise<{
  readonly found: LookUp<Storable>;
  readonly externalRef: string | null;
  readonly trouble: ServiceTrouble | null;
}> {
  const asked = await ask(attempt, (context) => attempt.tool.reconcile(argsOf(attempt.call), context));
  // Every error means the same here: it is not known, and the look-up is repeated until its own end.
  const found: LookUp<Storable> = asked.answer ?? { answer: "unknown" };
  const externalRef = found.answer === "happened" ? attempt.tool.externalRef(found.output) : null;
  return { found, externalRef, trouble: asked.trouble };
}

/** Asks a tool what has become of an effect that was accepted as pending. A poll that fails says nothing of it. */
export async function pollSettlement(attempt: Try, output: JsonValue): Promise<Polled> {
  const asked = await ask(attempt, (context) => attempt.tool.settle(argsOf(attempt.call), { ...context, output }));
  return { ...asked, answer: asked.answer ?? { answer: "still_pending" } };
}

async function ask<Answer>(
  attempt: Try,
  question: (context: ToolContext) => Promise<Answer>,
): Promise<Asked<Answer | null>> {
  const deadline = openDeadline(attempt.call.timeoutMs, attempt.stop);
  const answered = async (): Promise<Asked<Answer | null>> => {
    try {
      return { answer: await question(contextOf(attempt, deadline.signal)), failed: false, trouble: null };
    } catch (error) {
      return { answer: null, failed: true, trouble: troubleOf(error, deadline) };
    }
  };
  const asked = await deadline.race(answered());
  deadline.end();
  return asked ?? { answer: null, failed: true, trouble: deadline.isOver() ? UNAVAILABLE : null };
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

function codeOf(error: unknown, deadline: Deadline): string {
  if (error instanceof ToolError) return error.code;
  return deadline.isOver() ? TIMEOUT : "unexpected_error";
}

/** Who says no to what was asked has answered; a tool's own mistake says nothing of the service. */
function troubleOf(error: unknown, deadline: Deadline): ServiceTrouble | null {
  if (!(error instanceof ToolError)) return deadline.isOver() || isUnreachable(error) ? UNAVAILABLE : null;
  const { errorClass, retryAfterMs } = error;
  if (errorClass === "throttled") return { reason: "throttled", retryAfterMs };
  return errorClass === "transient" || errorClass === "unknown_outcome"
    ? { reason: "unavailable", retryAfterMs }
    : null;
}
