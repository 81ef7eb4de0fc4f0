import { type RunEvent, type RunState, reduce } from "@holdpoint/core";
import type { Move, TransitionResult, Writes } from "./move.ts";

/** A move as its statement takes it. */
export type MoveInput = ReturnType<typeof inputOf>;

/** What core says of a move: what is to be stored, or why nothing is. */
export type Reduced = TransitionResult | { readonly input: MoveInput };

/** Events that only the run's owner can mean: fenced by its name and epoch. */
const OWNERS: ReadonlySet<RunEvent["type"]> = new Set(["Held", "Released", "EffectUnknown", "Ended"]);

/** Reduces the events of a move, one after the other. */
export function reduceMove(move: Move): Reduced {
  let state = move.run.state;
  let pinsSteps = move.actor.kind === "worker" || move.actor.kind === "sweeper" || move.actor.kind === "supervisor";
  let closesApprovals = false;
  const log: { from: string; to: string; event: string }[] = [];
  for (const event of move.events) {
    const decision = reduce(state, event, move.actor);
    if (decision.verdict === "refused") {
      return { result: "rejected", rule: decision.rule, event: event.type, run: move.run };
    }
    if (decision.verdict === "ignored") continue;
    log.push({ from: state.status, to: decision.next.status, event: event.type });
    state = decision.next;
    pinsSteps ||= decision.pinsSteps;
    closesApprovals ||= decision.closesApprovals;
  }
  if (log.length === 0) return { result: "ignored", run: move.run };
  return { input: inputOf(move, { state, log, pinsSteps, closesApprovals }) };
}

const NO_WRITES = {
  checkpoint: null,
  currentStep: null,
  progressMs: null,
  result: null,
  agentVersion: null,
  resultArtifact: null,
  toldChildren: [],
  facts: [],
  messages: [],
  steps: [],
  settles: [],
  lookUps: [],
  requests: [],
  approvals: [],
  decisions: [],
  artifacts: [],
  late: [],
  callbacks: [],
  task: null,
} as const satisfies { readonly [Part in keyof Writes]-?: Writes[Part] | null };

function inputOf(
  { run, events, actor, reason, writes, notAfterMs }: Move,
  reduced: {
    state: RunState;
    log: readonly { from: string; to: string; event: string }[];
    pinsSteps: boolean;
    closesApprovals: boolean;
  },
) {
  // An owner moves only what it owns: after a conflict it must never repeat itself on somebody else's run.
  const fenced = events.some(
    (event) => OWNERS.has(event.type) || (event.type === "EffectSettled" && event.by === "owner"),
  );
  return {
    runId: run.id,
    expected: run.version,
    stepSeq: reduced.pinsSteps ? run.stepSeq : null,
    fenceOwner: fenced ? actor.id : null,
    fenceEpoch: fenced ? run.epoch : null,
    notAfter: notAfterMs === undefined ? null : { at: notAfterMs },
    actorKind: actor.kind,
    actorId: actor.id,
    reason: reason ?? null,
    next: reduced.state,
    // Steps reset them without a new version: a move that does not mean them must not bring back what it read.
    takeovers: reduced.state.takeovers === run.state.takeovers ? null : reduced.state.takeovers,
    attemptDelta: reduced.state.openAttempts - run.state.openAttempts,
    childDelta: reduced.state.liveChildren - run.state.liveChildren,
    log: reduced.log,
    closesApprovals: reduced.closesApprovals,
    resumedFrom: reduced.state.pausedAt === null ? run.state.pausedAt : null,
    storedId: writes?.facts?.[0]?.id ?? writes?.decisions?.[0]?.id ?? null,
    ...NO_WRITES,
    ...writes,
  };
}
