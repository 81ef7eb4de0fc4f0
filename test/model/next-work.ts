// What an owner does next on a run, by chance among what the rules of a turn allow. Pure: it knows what its process knows.

import {
  type Call,
  type Checkpoint,
  EMPTY_CHECKPOINT,
  type Hold,
  type RunEvent,
  rebuildCheckpoint,
  type StepBody,
} from "@holdpoint/core";
import {
  type ApprovalRequest,
  type LoadedRun,
  type Message,
  newId,
  type Run,
  type Settle,
  type StepCommit,
  type Writes,
} from "@holdpoint/store";
import { aCall, aCommit, aReply, aStart } from "../../packages/store/test/a-run.ts";
import { aGatedCall, aRequest, aResult } from "../../packages/store/test/a-status.ts";

/** A number below the bound. */
export type Chance = (below: number) => number;

/** Makes texts that nobody else uses. */
export type Names = (what: string) => string;

export interface Dice {
  readonly chance: Chance;
  readonly names: Names;
  /** Whether it only brings what is open to its end. */
  readonly isFinishing: boolean;
}

export type Work =
  | { readonly kind: "commit"; readonly commit: StepCommit; readonly spoiled: boolean }
  | { readonly kind: "move"; readonly events: readonly RunEvent[]; readonly writes: Writes };

/** How long a wait for somebody lasts in these sequences, by the database's clock, which is moved. */
const HOLD_MS = 10_000;

const READ = { kind: "read" } as const;

/** What its owner does next on this run. */
export function nextWork(known: LoadedRun, dice: Dice): Work {
  const { state } = known.run;
  if (state.status === "outcome_unknown") return findOut(known, dice);
  if (state.openAttempts > 0) return bringHome(known, dice);
  if (dice.isFinishing || state.cancelRequestedAt !== null) return dice.chance(2) === 0 ? release() : failed();
  if (state.pauseRequestedAt !== null) return release();
  const call = known.calls.find(({ id }) => !hasResult(known, id));
  if (call !== undefined) return actOn(known, call, dice);
  if (known.unread.length > 0) return readIn(known);
  return turn(known, dice);
}

/** Whether the call has been answered, as far as this process knows. */
export function hasResult({ steps }: LoadedRun, callId: string): boolean {
  return steps.some(({ body }) => body.kind === "tool_result" && body.callId === callId);
}

function turn(known: LoadedRun, dice: Dice): Work {
  const { chance, names } = dice;
  const kind = chance(20);
  if (kind < 1) return ask(dice);
  if (kind < 2) return release({ inMs: HOLD_MS });
  if (kind < 3) return release();
  if (kind < 5) return chance(4) === 0 ? failed() : completed();
  if (kind < 6) return spoiled(known, dice);
  const calls = Array.from({ length: chance(4) }, (_, ordinal) => callOf(known, ordinal, dice));
  const reply = { ...aReply(calls, nextTurn(known)), text: names("reply") } as StepBody;
  return commitOf(known, { steps: [reply], calls, ...said(dice) });
}

function callOf(known: LoadedRun, ordinal: number, { chance, names }: Dice): Call {
  const common = { turn: nextTurn(known), ordinal, argsHash: names("hash"), toolCallId: `call_${ordinal}` };
  const kind = chance(6);
  if (kind === 0) return aGatedCall(common);
  return kind < 4 ? aCall({ ...common, effect: READ }) : aCall(common);
}

function nextTurn({ calls, steps }: LoadedRun): number {
  const replies = steps.flatMap(({ body }) => (body.kind === "model_reply" ? [body.turn] : []));
  return Math.max(0, ...replies, ...calls.map((call) => call.turn)) + 1;
}

function said({ chance, names }: Dice): { readonly messages: readonly Message[] } {
  const message = (): Message => ({ role: "assistant", author: "refunds", text: names("said") });
  return { messages: chance(4) === 0 ? [message(), message()].slice(chance(2)) : [] };
}

/** The results of the reads that come next, and the start of the effect behind them: judged apart, in one statement. */
function actOn(known: LoadedRun, call: Call, dice: Dice): Work {
  if (call.effect.kind !== "read") return actOnEffect(known, call, dice);
  const open = known.calls.filter(({ id }) => !hasResult(known, id));
  const reads = open.slice(0, 1 + dice.chance(open.length)).filter(({ effect }) => effect.kind === "read");
  const steps = reads.map((each) => aResult(each, dice.names("read")));
  const next = open.find(({ id }) => !reads.some((each) => each.id === id));
  const mayStart = next !== undefined && next.effect.kind === "effect" && next.verdict.kind === "allowed";
  const start = mayStart && dice.chance(2) === 0 ? startOf(known, next, null) : null;
  return commitOf(known, { steps, start, ...said(dice) });
}

function actOnEffect(known: LoadedRun, call: Call, dice: Dice): Work {
  if (call.verdict.kind === "allowed") return commitOf(known, { start: startOf(known, call, null), progress: false });
  const approval = known.approvals.findLast(({ callId }) => callId === call.id);
  const isDue = approval === undefined || approval.state === "expired" || approval.state === "withdrawn";
  if (isDue && dice.chance(3) > 0) return askForRelease(call);
  if (approval?.state === "approved" && dice.chance(6) > 0) {
    return commitOf(known, { start: startOf(known, call, approval.id), progress: false });
  }
  const body = { ...aResult(call, dice.names("refused")), result: "rejected" } as const;
  return commitOf(known, { steps: [body] });
}

function startOf({ steps }: LoadedRun, call: Call, approvalId: string | null) {
  const tries = steps.filter(({ body }) => body.kind === "intent" && body.callId === call.id).length;
  return aStart(call, tries + 1, approvalId);
}

/** The result of the effect that is under way, or that nobody knows it. */
function bringHome(known: LoadedRun, dice: Dice): Work {
  const [attempt] = known.openAttempts;
  const call = known.calls.find(({ id }) => id === attempt?.callId);
  if (attempt === undefined || call === undefined) return unknown();
  if (!dice.isFinishing && dice.chance(8) === 0) return unknown();
  const settles: readonly Settle[] = [{ attemptId: attempt.id, outcome: "succeeded", settledBy: "worker" }];
  return commitOf(known, { steps: [aResult(call, dice.names("effect"))], settles, ...said(dice) });
}

/** A claim of a run whose effect nobody knows about: it is looked up, carried on, or left open. */
function findOut(known: LoadedRun, dice: Dice): Work {
  const [attempt] = known.openAttempts;
  const call = known.calls.find(({ id }) => id === attempt?.callId);
  if (attempt === undefined || call === undefined) return unknown();
  const kind = dice.isFinishing ? 0 : dice.chance(4);
  if (kind === 3) return unknown();
  if (kind === 2) {
    const start = { ...startOf(known, call, releaseOf(known, call)), supersedes: attempt.id };
    return commitOf(known, { start, progress: false });
  }
  const body = aResult(call, dice.names("looked_up"));
  return {
    kind: "move",
    events: [{ type: "EffectSettled", by: "owner", wasOpen: true }],
    writes: {
      steps: [body],
      settles: [{ attemptId: attempt.id, outcome: "happened", settledBy: "look_up" }],
      checkpoint: checkpointOf(known, [body]),
      progressMs: 600_000,
    },
  };
}

function releaseOf({ approvals }: LoadedRun, call: Call): string | null {
  return approvals.find(({ callId, state }) => callId === call.id && state === "spent")?.id ?? null;
}

function readIn(known: LoadedRun): Work {
  return commitOf(known, {
    steps: known.unread.map(({ body }) => body),
    readFacts: known.unread.map(({ id }) => id),
    progress: false,
  });
}

/** A commit that the database refuses, whoever shares its statement. */
function spoiled(known: LoadedRun, dice: Dice): Work {
  const steps = [{ ...aReply([], nextTurn(known)), text: dice.names("spoiled") } as StepBody];
  const checkpoint = { ...EMPTY_CHECKPOINT, lastCompleted: "x".repeat(3_000) };
  return { kind: "commit", commit: aCommit(known, { steps, checkpoint }), spoiled: true };
}

function commitOf(known: LoadedRun, carried: Parameters<typeof aCommit>[1] & object): Work {
  const steps = carried.steps ?? [];
  const bodies = carried.start ? [...steps, carried.start.body] : steps;
  const checkpoint = checkpointOf(known, bodies, carried.calls);
  return { kind: "commit", commit: aCommit(known, { progressMs: 600_000, ...carried, checkpoint }), spoiled: false };
}

function checkpointOf(known: LoadedRun, bodies: readonly StepBody[], calls: readonly Call[] = []): Checkpoint {
  const steps = bodies.map((body, index) => ({ seq: known.run.stepSeq + index + 1, body }));
  return rebuildCheckpoint([...known.steps, ...steps], [...known.calls, ...calls]);
}

function ask({ names }: Dice): Work {
  const hold: Hold = {
    kind: "input",
    waitingFor: { kind: "requester", principal: "alice", subject: null, reason: names("question") },
    deadline: { inMs: HOLD_MS },
    onDeadline: "no_answer",
  };
  return { kind: "move", events: [{ type: "Held", hold }], writes: {} };
}

function askForRelease(call: Call): Work {
  const request: ApprovalRequest = aRequest(call, { terms: { deadlineMs: HOLD_MS }, id: newId() });
  const hold: Hold = {
    kind: "approval",
    waitingFor: { kind: "approvers", principal: "role:manager", subject: call.id, reason: "over_limit" },
    deadline: { inMs: HOLD_MS },
    onDeadline: "reject",
  };
  return { kind: "move", events: [{ type: "Held", hold }], writes: { requests: [request] } };
}

function release(retryAt: { readonly inMs: number } | null = null): Work {
  return { kind: "move", events: [{ type: "Released", retryAt }], writes: {} };
}

function unknown(): Work {
  return {
    kind: "move",
    events: [{ type: "EffectUnknown", nextLookUp: { inMs: 0 }, lookUpsEnd: { inMs: 3_600_000 } }],
    writes: {},
  };
}

function completed(): Work {
  const outcome = { kind: "succeeded" } as const;
  return { kind: "move", events: [{ type: "Ended", status: "completed", outcome, reason: null }], writes: {} };
}

function failed(): Work {
  return {
    kind: "move",
    events: [{ type: "Ended", status: "failed", outcome: null, reason: "no_such_order" }],
    writes: {},
  };
}

/** The run as its owner knows it after its commit was taken. */
export function afterTaken(
  known: LoadedRun,
  commit: StepCommit,
  taken: {
    readonly stepSeq: number;
    readonly started: boolean;
    readonly policyRevision: number;
    readonly nowMs: number;
  },
): LoadedRun {
  const begun = taken.started ? commit.start : null;
  const bodies = begun === null ? commit.steps : [...commit.steps, begun.body];
  const gone = new Set([...(commit.settles ?? []).map(({ attemptId }) => attemptId), supersededBy(begun)]);
  const left = known.openAttempts.filter(({ id }) => !gone.has(id));
  const openAttempts = begun !== null && "attemptId" in begun ? [...left, openedBy(begun, taken.nowMs)] : left;
  const run: Run = {
    ...known.run,
    stepSeq: taken.stepSeq,
    state: {
      ...known.run.state,
      openAttempts: openAttempts.length,
      takeovers: commit.progress ? 0 : known.run.state.takeovers,
    },
  };
  return {
    ...known,
    run,
    policyRevision: taken.policyRevision,
    steps: [
      ...known.steps,
      ...bodies.map((body, index) => ({ seq: commit.stepSeq + index + 1, atMs: taken.nowMs, body })),
    ],
    calls: [...known.calls, ...(commit.calls ?? [])],
    unread: known.unread.filter(({ id }) => !(commit.readFacts ?? []).includes(id)),
    approvals: known.approvals.map((each) => (each.id === begun?.approvalId ? { ...each, state: "spent" } : each)),
    openAttempts,
  };
}

function supersededBy(begun: StepCommit["start"]): string | null {
  return begun !== null && "supersedes" in begun ? begun.supersedes : null;
}

function openedBy(
  start: Extract<NonNullable<StepCommit["start"]>, { readonly attemptId: string }>,
  nowMs: number,
): LoadedRun["openAttempts"][number] {
  return {
    id: start.attemptId,
    callId: start.body.callId,
    number: start.body.attempt,
    startedAtMs: nowMs,
    deadlineAtMs: nowMs + start.deadlineMs,
    keyFirstUsedAtMs: nowMs,
    repeatRefused: false,
    lookUps: 0,
    errorCode: null,
  };
}
