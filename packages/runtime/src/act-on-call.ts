import { setTimeout as sleep } from "node:timers/promises";
import {
  approvalFor,
  backoffMs,
  type Call,
  DEFAULT_DEADLINES,
  LOOK_UP_BACKOFF,
  type Next,
  type OpenAttempt,
  type OpenCall,
  type StepBody,
  takeOver,
} from "@holdpoint/core";
import {
  type Artifact,
  type LateEvidence,
  newId,
  recordLateEvidence,
  type Settle,
  type Writes,
} from "@holdpoint/store";
import type { Tool } from "./define-tool.ts";
import { executeCall, type TryOutcome } from "./execute-call.ts";
import { storeOutput } from "./output.ts";
import { mayPass, type Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

type Execute = Extract<Next, { do: "execute" }>;

const CALL_BACKOFF_CAP_MS = 60_000;
/** How soon an effect without a known outcome is looked up for the first time. */
const FIRST_LOOK_UP_MS = 1_000;
/** A result that could not be stored because the rows changed is tried again on the new ones, this often. */
const SETTLE_TRIES = 20;
/** How long late evidence is kept for a database that is away. */
const LATE_PAUSE_MS = 1_000;
const LATE_TRIES = 60;

/** Executes a call: a read at once, an effect behind its committed intent. */
export async function actOnCall(act: Act, next: Execute): Promise<Stored> {
  const tool = act.context.agent.tools.get(next.call.tool);
  if (tool === undefined)
    throw new RangeError(`Agent ${act.context.agent.name} has no tool ${next.call.tool} any more`);
  return next.call.effect.kind === "read" ? executeRead(act, next, tool) : executeEffect(act, next, tool);
}

async function executeRead({ context, run, stop }: Act, { call, attempt }: Execute, tool: Tool): Promise<Stored> {
  const { id: runId, requester } = run.view.run;
  const startedMs = context.clock.monotonicMs();
  const remainingMs = call.timeoutMs;
  const outcome = await executeCall({ tool, call, attempt, runId, requester, stop, remainingMs });
  if (outcome.kind === "aborted" || outcome.kind === "unknown") return run.reload();
  const durationMs = context.clock.monotonicMs() - startedMs;
  const { body, artifacts, settle } = conclude(outcome, { call, attempt, tool });
  const finished = { ...settle, attemptId: newId(), callId: call.id, number: attempt, durationMs };
  logTry(context, { runId, call, attempt, outcome, durationMs });
  return run.commit({
    steps: [body],
    finished: [{ ...finished, outcome: outcome.kind === "done" ? "succeeded" : "failed" }],
    artifacts,
    currentStep: call.tool,
    progress: body.kind === "tool_result",
  });
}

/** The intent is committed before anything is sent. No committed intent, no call. */
async function executeEffect(act: Act, { call, attempt, approvalId }: Execute, tool: Tool): Promise<Stored> {
  return beginEffect(act, { call, attempt, tool, supersedes: null, approvalId });
}

/** Commits an intent and makes the call behind it, as a first try or as a repeat of an attempt whose worker died. */
export async function beginEffect(
  act: Act,
  begin: {
    readonly call: Call;
    readonly attempt: number;
    readonly tool: Tool;
    readonly supersedes: string | null;
    readonly approvalId: string | null;
  },
): Promise<Stored> {
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
      approval: approvalId === null ? null : { id: approvalId, argsHash: call.argsHash },
      supersedes,
    },
    currentStep: call.tool,
    progress: false,
  });
  if (begun.result !== "taken") return begun;
  // Refused: a stop or a pause was requested, or the approval has lapsed. The rows say which.
  if (!begun.started) return run.reload();
  const remainingMs = call.timeoutMs - (context.clock.monotonicMs() - sentMs);
  if (remainingMs <= 0) return settleEffect(act, { ...begin, attemptId }, TOO_LATE);
  if (act.stop.aborted || !context.lease.isValid()) return notSent(act, begin, attemptId);
  const { id: runId, requester } = run.view.run;
  const outcome = await executeCall({ tool, call, attempt, runId, requester, stop: act.stop, remainingMs });
  const durationMs = context.clock.monotonicMs() - sentMs;
  logTry(context, { runId, call, attempt, outcome, durationMs });
  return settleEffect(act, { ...begin, attemptId }, outcome);
}

/** The deadline passed before anything was sent; counts against the retries, or a slow database would loop for ever. */
const TOO_LATE: TryOutcome = {
  kind: "failed",
  errorClass: "transient",
  code: "deadline_before_send",
  message: "The deadline passed before the call was sent.",
  retryAfterMs: null,
};

type Begun = { readonly call: Call; readonly attempt: number; readonly tool: Tool; readonly supersedes: string | null };

/** The intent is there, but this process never sent anything for it: what it carried on may still have acted. */
async function notSent(act: Act, { call, attempt, supersedes }: Begun, attemptId: string): Promise<Stored> {
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

async function settleEffect(
  act: Act,
  begun: Begun & { readonly attemptId: string },
  outcome: TryOutcome,
): Promise<Stored> {
  const { context, run } = act;
  const { call, attemptId, supersedes } = begun;
  if (outcome.kind === "unknown" || outcome.kind === "aborted") return giveAsUnknown(act, call);
  // That a repeat failed says nothing about the attempt that it repeats.
  if (outcome.kind === "failed" && supersedes !== null) return giveFailedRepeat(act, begun, outcome);
  const { body, settle, artifacts } = conclude(outcome, begun);
  const settles = [{ ...settle, attemptId, settledBy: `worker:${context.workerId}` }];
  const store = (): Promise<Stored> =>
    run.view.run.state.status === "outcome_unknown"
      ? run.move([{ type: "EffectSettled", by: "owner", wasOpen: true }], { steps: [body], settles, artifacts })
      : run.commit({
          steps: [body],
          settles,
          artifacts,
          currentStep: call.tool,
          progress: body.kind === "tool_result",
        });
  let stored = await storeOrNull(store);
  for (let tries = 1; stored?.result === "changed" && isOpen(run, attemptId) && tries < SETTLE_TRIES; tries += 1) {
    stored = await storeOrNull(store);
  }
  if (stored?.result === "taken" || stored?.result === "given") return stored;
  await reportLate(act, { runId: run.view.run.id, attemptId, workerId: context.workerId, body, settle, artifacts });
  return stored ?? { result: "replaced" };
}

function isOpen({ view }: Act["run"], attemptId: string): boolean {
  return view.openAttempts.some(({ id }) => id === attemptId);
}

/** The lease ran out while the database was away: what the effect brought is still worth storing. */
async function storeOrNull(store: () => Promise<Stored>): Promise<Stored | null> {
  try {
    return await store();
  } catch (error) {
    if (mayPass(error)) return null;
    throw error;
  }
}

/** Somebody else has the run, or has settled the attempt: what the effect brought is stored beside that. */
async function reportLate({ context }: Act, late: LateEvidence): Promise<void> {
  const { runId, attemptId } = late;
  for (let tries = 1; ; tries += 1) {
    try {
      const reported = await recordLateEvidence(context.store, late);
      context.log.warn({ event: "effect.reported_late", runId, attemptId, reported }, "effect reported late");
      return;
    } catch (error) {
      if (!mayPass(error) || tries >= LATE_TRIES) throw error;
      await sleep(LATE_PAUSE_MS);
    }
  }
}

/** Gives the run back with its attempt open: it is looked up before anything else happens. */
export function giveAsUnknown(
  act: Act,
  call: Call,
  again: { delayMs?: number; writes?: Writes } = {},
): Promise<Stored> {
  const { delayMs = FIRST_LOOK_UP_MS, writes = {} } = again;
  const attempt = act.run.view.openAttempts[0];
  const way = attempt === undefined ? null : takeOver(openCall(act, call, attempt));
  const nextLookUp = way === null || way.do === "ask_a_person" ? null : { inMs: delayMs };
  return act.run.move(
    [{ type: "EffectUnknown", nextLookUp, lookUpsEnd: { inMs: DEFAULT_DEADLINES.lookUpsMs } }],
    writes,
    way?.do === "ask_a_person" ? way.reason : null,
  );
}

/** A repeat that failed for the moment is made again later; one that was turned down is not, and a look-up or a person decides. */
function giveFailedRepeat(
  act: Act,
  { call, attempt, attemptId }: Begun & { readonly attemptId: string },
  outcome: Extract<TryOutcome, { kind: "failed" }>,
): Promise<Stored> {
  if (isPassing(outcome)) {
    return giveAsUnknown(act, call, { delayMs: outcome.retryAfterMs ?? backoffMs(attempt - 2, LOOK_UP_BACKOFF) });
  }
  act.run.markRepeatRefused(attemptId);
  const { errorClass, code: errorCode } = outcome;
  return giveAsUnknown(act, call, { writes: { lookUps: [{ attemptId, errorClass, errorCode }] } });
}

/** An open attempt, and what its run allows at this moment. */
export function openCall({ run }: Act, call: Call, attempt: OpenAttempt): OpenCall {
  const { cancelRequestedAt, pauseRequestedAt } = run.view.run.state;
  const approval = approvalFor(call, { approvals: run.view.approvals, nowMs: run.nowMs });
  const mayStart = cancelRequestedAt === null && pauseRequestedAt === null && approval !== undefined;
  return { call, attempt, nowMs: run.nowMs, mayStart };
}

function isPassing({ errorClass }: Extract<TryOutcome, { kind: "failed" }>): boolean {
  return errorClass === "transient" || errorClass === "throttled";
}

/** What a try that ended for certain means for the history, its attempt and the size limits. */
function conclude(
  outcome: Extract<TryOutcome, { kind: "done" | "failed" }>,
  { call, attempt, tool }: { readonly call: Call; readonly attempt: number; readonly tool: Tool },
): { body: LateBody; settle: Omit<Settle, "attemptId" | "settledBy">; artifacts: readonly Artifact[] } {
  if (outcome.kind === "done") {
    const { output, artifacts } = storeOutput(outcome.output);
    const body = { kind: "tool_result", callId: call.id, result: "succeeded", output } as const;
    return { body, artifacts, settle: { outcome: "succeeded", externalRef: outcome.externalRef } };
  }
  const { code, errorClass, message, retryAfterMs } = outcome;
  const settle = { outcome: "failed", errorClass, errorCode: code } as const;
  if (!isPassing(outcome)) {
    const output = { result: "failed", code, message };
    return { body: { kind: "tool_result", callId: call.id, result: "failed", output }, artifacts: [], settle };
  }
  const retryInMs = retryAfterMs ?? backoffMs(attempt - 1, { firstMs: tool.firstDelayMs, capMs: CALL_BACKOFF_CAP_MS });
  return {
    body: { kind: "call_failed", callId: call.id, attempt, errorClass, code, retryInMs },
    artifacts: [],
    settle,
  };
}

type LateBody = Extract<StepBody, { kind: "tool_result" | "call_failed" }>;

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
  const line = { event: `attempt.${outcome.kind}`, runId, tool: call.tool, callId: call.id, attempt, ...code };
  log.info({ ...line, durationMs: Math.round(tried.durationMs) }, `attempt ${outcome.kind}`);
}
