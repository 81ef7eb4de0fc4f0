import { setTimeout as sleep } from "node:timers/promises";
import {
  approvalFor,
  backoffMs,
  type Call,
  DEFAULT_DEADLINES,
  LOOK_UP_BACKOFF,
  type OpenAttempt,
  type OpenCall,
  takeOver,
} from "@holdpoint/core";
import { failureKind, type LateEvidence, recordLateEvidence, type Writes } from "@holdpoint/store";
import { type Concluded, conclude, isPassing } from "./conclude.ts";
import type { Tool } from "./define-tool.ts";
import type { LateOutcome, TryOutcome } from "./execute-call.ts";
import { nameOf } from "./log.ts";
import { mayPass, type Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** How soon an effect without a known outcome is looked up for the first time. */
const FIRST_LOOK_UP_MS = 1_000;
/** A result that could not be stored because the rows changed is tried again on the new ones, this often. */
const SETTLE_TRIES = 20;
/** How long late evidence is kept for a database that is away. */
const LATE_PAUSE_MS = 1_000;
const LATE_TRIES = 60;

/** A try of an effect whose intent is committed. */
export interface BegunEffect {
  readonly call: Call;
  readonly attempt: number;
  readonly attemptId: string;
  readonly tool: Tool;
  /** The open attempt of another claim that this one carries on. */
  readonly supersedes: string | null;
  /** It finds out whether its service is back. */
  readonly probe: boolean;
}

/** Stores what a try of an effect came to; where nobody knows, gives the run back to be looked up. */
export async function settleEffect(act: Act, begun: BegunEffect, outcome: TryOutcome): Promise<Stored> {
  if (outcome.kind === "unknown") {
    if (outcome.afterwards !== null) expectLate(act, begun, outcome.afterwards);
    return giveUnknown(act, begun, outcome.code);
  }
  if (outcome.kind === "aborted") return giveAsUnknown(act, begun.call);
  // That a repeat failed says nothing about the attempt that it repeats.
  if (outcome.kind === "failed" && begun.supersedes !== null) return giveFailedRepeat(act, begun, outcome);
  return storeOutcome(act, begun, conclude(outcome, begun));
}

async function storeOutcome(act: Act, begun: BegunEffect, concluded: Concluded): Promise<Stored> {
  const { run } = act;
  const { attemptId } = begun;
  let kept: Kept = concluded;
  let stored = await tryToStore(act, begun, kept);
  for (let tries = 1; tries < SETTLE_TRIES; tries += 1) {
    if (stored === "refused") kept = concluded.spare;
    else if (stored?.result !== "changed" || !isOpen(run, attemptId)) break;
    stored = await tryToStore(act, begun, kept);
  }
  if (stored === "refused") throw new Error(`The outcome of attempt ${attemptId} was refused by the database`);
  if (stored?.result === "taken" || stored?.result === "given") return stored;
  await reportLate(act, attemptId, concluded);
  return stored ?? { result: "replaced" };
}

/**
 * Null: the lease ran out while the database was away; what the effect brought is still worth storing. Refused: the
 * database does not take what belongs to the outcome.
 */
async function tryToStore(
  act: Act,
  { call, attemptId }: BegunEffect,
  { body, settle, artifacts }: Kept,
): Promise<Stored | "refused" | null> {
  const { context, run } = act;
  const settles = [{ ...settle, attemptId, settledBy: `worker:${context.workerId}` }];
  try {
    if (run.view.run.state.status === "outcome_unknown") {
      const event = { type: "EffectSettled", by: "owner", wasOpen: true } as const;
      return await run.move([event], { steps: [body], settles, artifacts });
    }
    const progress = body.kind !== "call_failed";
    return await run.commit({ steps: [body], settles, artifacts, currentStep: call.tool, progress });
  } catch (error) {
    if (mayPass(error)) return null;
    if (failureKind(error) === "data") return "refused";
    throw error;
  }
}

type Kept = Omit<Concluded, "spare">;

function isOpen({ view }: Act["run"], attemptId: string): boolean {
  return view.openAttempts.some(({ id }) => id === attemptId);
}

/** A tool that was given up may still come back: what it brings is stored as evidence, whoever has the run by then. */
function expectLate(act: Act, begun: BegunEffect, afterwards: Promise<LateOutcome | null>): void {
  const report = async (): Promise<void> => {
    const late = await afterwards;
    if (late === null || (late.kind === "failed" && begun.supersedes !== null)) return;
    await reportLate(act, begun.attemptId, conclude(late, begun));
  };
  act.context.stragglers.add(
    report().catch((error) => {
      const { id: runId } = act.run.view.run;
      const line = { event: "effect.not_reported", runId, attemptId: begun.attemptId, error: nameOf(error) };
      act.context.log.error(line, "effect not reported");
    }),
  );
}

/** Somebody else has the run, or has settled the attempt: what the effect brought is stored beside that. */
async function reportLate({ context, run }: Act, attemptId: string, concluded: Concluded): Promise<void> {
  const { id: runId } = run.view.run;
  const { workerId } = context;
  let kept: Kept = concluded;
  for (let tries = 1; ; tries += 1) {
    try {
      const late: LateEvidence = { runId, attemptId, workerId, ...kept };
      const reported = await recordLateEvidence(context.store, late);
      context.log.warn({ event: "effect.reported_late", runId, attemptId, reported }, "effect reported late");
      return;
    } catch (error) {
      if (tries >= LATE_TRIES) throw error;
      if (failureKind(error) === "data" && kept !== concluded.spare) kept = concluded.spare;
      else if (!mayPass(error)) throw error;
      else await sleep(LATE_PAUSE_MS);
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

/** Repeats that bring nothing are made ever more rarely. Why nobody knows is kept: if it did not happen, that was a try. */
function giveUnknown(act: Act, { call, attempt, attemptId, supersedes, probe }: BegunEffect, code: string) {
  const delayMs = supersedes === null ? FIRST_LOOK_UP_MS : backoffMs(attempt - 2, LOOK_UP_BACKOFF);
  return giveAsUnknown(act, call, { delayMs, writes: probe ? {} : { lookUps: [{ attemptId, errorCode: code }] } });
}

/** A repeat that failed for the moment is made again later; one that was turned down is not, and a look-up or a person decides. */
function giveFailedRepeat(
  act: Act,
  { call, attempt, attemptId }: BegunEffect,
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
  const { approvals, denials } = run.view;
  const approval = approvalFor(call, { approvals, denials, nowMs: run.nowMs });
  const mayStart = cancelRequestedAt === null && pauseRequestedAt === null && approval !== undefined;
  return { call, attempt, nowMs: run.nowMs, mayStart };
}
