import { type Call, type Next, operatorHold } from "@holdpoint/core";
import { failureKind, loadRun, newId } from "@holdpoint/store";
import { answerOfFailure, reportWith, type ServiceAnswer } from "./call-service.ts";
import { type Concluded, conclude } from "./conclude.ts";
import type { Tool } from "./define-tool.ts";
import { executeCall, type TryOutcome } from "./execute-call.ts";
import { isWhole, misfitOf } from "./judge-calls.ts";
import { nameOf } from "./log.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";
import { giveAsUnknown, settleEffect } from "./settle-effect.ts";
import { startRefused } from "./start-refused.ts";

type Execute = Extract<Next, { do: "execute" }>;

/** Executes a call: a read at once, an effect behind its committed intent. */
export function actOnCall(act: Act, next: Execute): Promise<Stored> {
  const { call, attempt, approvalId } = next;
  const tool = act.context.agent.tools.get(call.tool);
  if (!isWhole(call)) return refuseCall(act, call, "arguments_mismatch");
  if (tool === undefined || !takes(tool, call)) return refuse(act, next, tool !== undefined);
  const probe = next.service !== null;
  if (call.effect.kind === "read") return executeRead(act, next, { tool, probe });
  return beginEffect(act, { call, attempt, tool, supersedes: null, approvalId, probe });
}

/**
 * Whether this is the tool that the call was frozen for: what was judged, and perhaps approved, is what runs. Of a read whose
 * hash is derived from its arguments it says nothing about those.
 */
export function isFor(tool: Tool, call: Call): boolean {
  return isWhole(call) && takes(tool, call);
}

function takes(tool: Tool, call: Call): boolean {
  return tool.effect.kind === call.effect.kind && misfitOf(tool, call.args) === null;
}

/**
 * Never runs what does not fit. What a person has made of the arguments is asked for anew; for what the model said there
 * is nobody to ask but an operator.
 */
function refuse(act: Act, { call, approvalId }: Execute, isThere: boolean): Promise<Stored> {
  const { run } = act;
  const edited = run.view.approvals.find(({ id, editedBy }) => id === approvalId && editedBy !== null);
  if (isThere && edited !== undefined) {
    const approvals = [{ id: edited.id, state: "withdrawn" }] as const;
    return run.move([{ type: "Released", retryAt: null }], { approvals }, "edited arguments do not fit");
  }
  return refuseCall(act, call, "incompatible_tool");
}

/** Gives a call that must not run to an operator, with the reason. */
export function refuseCall({ run, context }: Act, call: Call, reason: string): Promise<Stored> {
  const { id: runId } = run.view.run;
  context.log.error({ event: "call.refused", runId, tool: call.tool, callId: call.id, reason }, "call refused");
  const hold = operatorHold(reason, call.id);
  return run.move([{ type: "Held", hold }], { currentStep: call.tool }, hold.waitingFor.reason);
}

async function executeRead(
  act: Act,
  { call, attempt, approvalId }: Execute,
  { tool, probe }: { readonly tool: Tool; readonly probe: boolean },
): Promise<Stored> {
  const { context, run, stop } = act;
  const { id: runId, requester } = run.view.run;
  const startedMs = context.clock.monotonicMs();
  const remainingMs = call.timeoutMs;
  const outcome = await executeCall({ tool, call, attempt, runId, requester, stop, remainingMs });
  if (outcome.kind === "aborted" || outcome.kind === "unknown") return run.reload();
  const durationMs = context.clock.monotonicMs() - startedMs;
  logTry(context, { runId, call, attempt, outcome, durationMs });
  const concluded = conclude(outcome, { call, attempt, tool, probe });
  const failed = outcome.kind === "failed" ? { errorClass: outcome.errorClass, code: outcome.code } : {};
  const tried = { attempt, durationMs: Math.round(durationMs), ...failed };
  const store = ({ body, artifacts }: Concluded["spare"]): Promise<Stored> =>
    run.commit({
      steps: [{ ...body, ...tried }],
      artifacts,
      usedApproval: body.kind === "tool_result" ? approvalId : null,
      currentStep: call.tool,
      progress: body.kind === "tool_result",
    });
  return await reportWith(act, { service: call.service, answer: answerOf(outcome) }, () =>
    store(concluded).catch((error) => {
      if (failureKind(error) !== "data") throw error;
      return store(concluded.spare);
    }),
  );
}

/** An intent, and what it carries on. */
export interface Begin {
  readonly call: Call;
  readonly attempt: number;
  readonly tool: Tool;
  readonly supersedes: string | null;
  readonly approvalId: string | null;
  readonly probe: boolean;
}

/**
 * Commits an intent and makes the call behind it, as a first try or as a repeat of an attempt whose worker died. The
 * intent is committed before anything is sent. No committed intent, no call.
 */
export async function beginEffect(act: Act, begin: Begin): Promise<Stored> {
  const { context, run } = act;
  const { call, attempt, tool, supersedes, approvalId } = begin;
  const attemptId = newId();
  // The deadline counts from before the intent is sent: the database starts it later, never earlier.
  const sentMs = context.clock.monotonicMs();
  const begun = await run.commit({
    steps: [],
    start: {
      body: { kind: "intent", callId: call.id, attempt },
      attemptId,
      deadlineMs: call.timeoutMs,
      externalRef: call.operationId,
      argsHash: call.argsHash,
      approvalId,
      policyRevision: run.view.policyRevision,
      supersedes,
    },
    currentStep: call.tool,
    progress: false,
  });
  if (begun.result !== "taken") return begun;
  // Refused: a stop or a pause was requested, or the approval has lapsed. The rows say which.
  if (!begun.started) return startRefused(act, begun.refusal);
  const remainingMs = call.timeoutMs - (context.clock.monotonicMs() - sentMs);
  if (remainingMs <= 0) return settleEffect(act, { ...begin, attemptId }, TOO_LATE);
  if (act.stop.aborted || !context.lease.isValid()) return notSent(act, begin, attemptId);
  const { id: runId, requester } = run.view.run;
  const cancel = tool.abortable ? watchCancel(act) : null;
  const stop = cancel?.signal ?? act.stop;
  const outcome = await executeCall({ tool, call, attempt, runId, requester, stop, remainingMs });
  cancel?.end();
  const durationMs = context.clock.monotonicMs() - sentMs;
  logTry(context, { runId, call, attempt, outcome, durationMs });
  const settle = () => settleEffect(act, { ...begin, attemptId }, outcome);
  return reportWith(act, { service: call.service, answer: answerOf(outcome) }, settle);
}

/** The deadline passed before anything was sent; counts against the retries, or a slow database would loop for ever. */
const TOO_LATE: TryOutcome = {
  kind: "failed",
  errorClass: "transient",
  code: "deadline_before_send",
  message: "The deadline passed before the call was sent.",
  retryAfterMs: null,
  trouble: null,
};

/** The intent is there, but this process never sent anything for it: what it carried on may still have acted. */
async function notSent(act: Act, { call, attempt, supersedes }: Begin, attemptId: string): Promise<Stored> {
  if (supersedes !== null) return giveAsUnknown(act, call);
  if (!act.context.lease.isValid()) return { result: "replaced" };
  return act.run.commit({
    steps: [{ kind: "did_not_happen", callId: call.id, attempt }],
    settles: [
      { attemptId, outcome: "did_not_happen", settledBy: `worker:${act.context.workerId}`, errorCode: "not_sent" },
    ],
    currentStep: call.tool,
    progress: false,
  });
}

/** What ends an abortable effect: its run's cancel, the end of the lease or of the drain time; not a pause. */
function watchCancel({ context, run, stop }: Act): { readonly signal: AbortSignal; end(): void } {
  const cancelled = new AbortController();
  const onStop = async (): Promise<void> => {
    const isOver = context.drained.aborted || !context.lease.isValid();
    if (isOver || (await isCancelled({ context, run }))) cancelled.abort(stop.reason);
  };
  const listener = (): void => void onStop();
  stop.addEventListener("abort", listener, { once: true });
  return { signal: cancelled.signal, end: () => stop.removeEventListener("abort", listener) };
}

async function isCancelled({ context, run }: Pick<Act, "context" | "run">): Promise<boolean> {
  const { id: runId } = run.view.run;
  try {
    const loaded = await loadRun(context.store, runId);
    return loaded === null || loaded.run.state.cancelRequestedAt !== null;
  } catch (error) {
    // It is left to end within its deadline, as if it could not be broken off.
    context.log.warn({ event: "run.stop_not_read", runId, error: nameOf(error) }, "stop not read");
    return false;
  }
}

function answerOf(outcome: TryOutcome): ServiceAnswer {
  if (outcome.kind === "aborted") return "unknown";
  if (outcome.kind === "done") return "well";
  if (outcome.trouble !== null) return outcome.trouble;
  return outcome.kind === "failed" ? answerOfFailure(outcome.errorClass) : "unknown";
}

function logTry(
  { log }: Act["context"],
  tried: {
    readonly runId: string;
    readonly call: Call;
    readonly attempt: number;
    readonly outcome: TryOutcome;
    readonly durationMs: number;
  },
): void {
  const { runId, call, attempt, outcome } = tried;
  const code = "code" in outcome ? { code: outcome.code } : {};
  const durationMs = Math.round(tried.durationMs);
  const line = {
    event: `attempt.${outcome.kind}`,
    runId,
    tool: call.tool,
    callId: call.id,
    attempt,
    ...code,
    durationMs,
  };
  // A read that went well is told by the run's steps and its timeline.
  const isRoutine = outcome.kind === "done" && call.effect.kind === "read";
  log[isRoutine ? "debug" : "info"](line, `attempt ${outcome.kind}`);
}
