import type { RunEvent } from "../src/event.ts";
import { type RunHistory, runHistory } from "../src/history.ts";
import type { Next, PlanInput } from "../src/next.ts";
import { plan } from "../src/plan.ts";
import { familyOf, wakesParent } from "../src/plan-children.ts";
import type { DenyRule } from "../src/policy.ts";
import { presentHold } from "../src/rest.ts";
import type { Hold, Outcome, RunState } from "../src/state.ts";
import { submitted } from "../src/state.ts";
import { isTerminal } from "../src/status.ts";
import type { Approval, Call, Child, ChildrenProperties, Fact, Step, StepBody } from "../src/step.ts";
import { afterEvent, factArrived, operatorDecided } from "./all-events.ts";
import {
  aCall,
  aChild,
  aDenial,
  aFact,
  anApproval,
  anInput,
  anOrder,
  aReply,
  aResult,
  BLOCKED,
  childRuns,
  NEEDS_APPROVAL,
  NOW_MS,
  PARTIAL,
  SUCCEEDED,
  steps,
} from "./builders.ts";

// A run with one call that starts children, beside all that can happen to it: the rows as the database keeps them, and
// acts of workers, children, people and sweepers in any order. What a worker has planned it stores later, or never.

export interface Settings {
  readonly effect: ChildrenProperties;
  readonly total: number;
  readonly isGated: boolean;
  /** Rows of children that have ended may be removed. */
  readonly mayVanish: boolean;
}

/** What was decided when ends of children were told to a parent that waits for children. */
export interface Telling {
  /** By the last start alone, as whoever tells sees it. */
  readonly wakes: boolean;
  /** By all that is stored. */
  readonly wakesByAll: boolean;
  /** Planning anew would do something else than wait as before. */
  readonly hasToAct: boolean;
}

export interface World {
  readonly settings: Settings;
  readonly call: Call;
  readonly run: RunState;
  readonly version: number;
  readonly steps: readonly Step[];
  readonly history: RunHistory;
  readonly children: readonly Child[];
  readonly approvals: readonly Approval[];
  readonly denials: readonly DenyRule[];
  readonly unread: readonly Fact[];
  /** What the owner means to do, by what it has read. */
  readonly planned: { readonly next: Next; readonly version: number; readonly stepSeq: number } | null;
  readonly crashes: number;
  readonly tellings: readonly Telling[];
}

/** What happens to a world; null where it cannot. `pick` says which of several things. */
type Act = (world: World, pick: number) => World | null;

export function aWorld(settings: Settings): World {
  const verdict = settings.isGated ? NEEDS_APPROVAL : ({ kind: "allowed" } as const);
  const call = aCall(1, { tool: "ask_departments", effect: childRuns(settings.effect), verdict });
  const first = steps(aReply(["call_1"]));
  return {
    settings,
    call,
    run: submitted(),
    version: 1,
    steps: first,
    history: runHistory(first, [call]),
    children: [],
    approvals: [],
    denials: [],
    unread: [],
    planned: null,
    crashes: 0,
    tellings: [],
  };
}

function inputOf(world: World): PlanInput {
  const { history, run, children, approvals, denials, unread } = world;
  const { liveChildren } = run;
  return { ...anInput({ children, liveChildren, approvals, denials, unread }), history };
}

/** Whether planning anew would wait as this hold says, for the same. */
export function waitsAsBefore(world: World, { waitingFor }: Hold): boolean {
  const next = plan(inputOf(world));
  if (next.do !== "hold") return false;
  const { kind, subject, reason } = next.hold.waitingFor;
  return kind === waitingFor.kind && subject === waitingFor.subject && reason === waitingFor.reason;
}

/** Whether the end of children would wake this parent, as far as these steps tell. */
export function wakes(world: World, hold: Hold | null, rows: readonly Step[] = world.steps): boolean {
  const callId = hold?.waitingFor.subject ?? null;
  const family = callId === null ? null : familyOf({ steps: rows, children: world.children }, callId);
  const effect = callId === null ? null : world.settings.effect;
  return wakesParent(hold, { effect, family, liveChildren: world.run.liveChildren });
}

export const ACTS = {
  claim: (world) => (world.run.status === "queued" ? raise(world, { type: "Claimed", owner: "worker_1" }) : null),
  think: (world) => {
    if (world.run.owner === null || world.planned !== null) return null;
    return { ...world, planned: { next: plan(inputOf(world)), version: world.version, stepSeq: world.steps.length } };
  },
  store: (world) => (world.planned === null ? null : store({ ...world, planned: null }, world.planned)),
  crash: (world) => {
    if (world.run.owner === null || world.crashes === 2) return null;
    const lost = raise(
      { ...world, planned: null, crashes: world.crashes + 1 },
      { type: "OwnerGone", reason: "lease_expired" },
    );
    return raise(lost, { type: "Recovered" });
  },
  endChild: (world, pick) => {
    const child = pickOf(world.children.filter(isAtWork), pick);
    if (child === null) return null;
    return withChildren(world, [child], { ...(pickOf(ENDS, Math.floor(pick / 7)) ?? {}) });
  },
  tell: (world, pick) => {
    const untold = world.children.filter((child) => !isAtWork(child) && !child.ended);
    const one = pickOf(untold, pick);
    if (one === null || isTerminal(world.run.status)) return null;
    return tell(world, pick % 2 === 0 ? untold : [one]);
  },
  operate: (world, pick) => {
    if (world.run.status !== "waiting_operator") return null;
    const subject = world.run.waitingFor?.subject ?? null;
    const choice = subject !== null && pick % 3 === 0 ? "skip" : "retry";
    return raise({ ...world, unread: [...world.unread, aFact(anOrder(choice, subject))] }, operatorDecided(choice));
  },
  approve: (world, pick) => {
    if (world.run.status !== "waiting_approval") return null;
    const state = pickOf(["approved", "approved", "approved", "rejected", "skipped"] as const, pick) ?? "approved";
    const approvals = world.approvals.map((each) => (each.state === "pending" ? { ...each, state } : each));
    return raise({ ...world, approvals }, factArrived("decision", true));
  },
  lapse: (world) => ({ ...world, approvals: world.approvals.map((each) => ({ ...each, validUntilMs: NOW_MS })) }),
  forbid: (world) => ({ ...world, denials: [aDenial("ask_departments")] }),
  allow: (world) => (world.denials.length === 0 ? null : { ...world, denials: [] }),
  passDeadline: (world) =>
    world.run.status === "waiting_dependency" ? raise(world, { type: "DeadlinePassed", remaining: null }) : null,
  pause: (world) =>
    world.run.cancelRequestedAt === null && !isTerminal(world.run.status)
      ? raise(world, { type: "PauseRequested" })
      : null,
  resume: (world) => (world.run.pauseRequestedAt === null ? null : raise(world, { type: "Resumed" })),
  cancel: (world) => {
    if (isTerminal(world.run.status)) return null;
    const asked = raise(world, { type: "CancelRequested", reason: null });
    return withChildren(asked, asked.children.filter(isAtWork), { stopRequested: true });
  },
  vanish: (world, pick) => {
    if (!world.settings.mayVanish) return null;
    const gone = pickOf(
      world.children.filter(({ ended }) => ended),
      pick,
    );
    return gone === null ? null : { ...world, children: world.children.filter(({ id }) => id !== gone.id) };
  },
} as const satisfies Readonly<Record<string, Act>>;

export type ActName = keyof typeof ACTS;

const ENDS: readonly Partial<Child>[] = [
  completed(SUCCEEDED),
  completed(PARTIAL),
  completed(BLOCKED),
  { status: "failed", endReason: "no_such_order" },
  { status: "cancelled", endReason: "aborted" },
];

function completed(outcome: Outcome): Partial<Child> {
  return { status: "completed", outcome };
}

function isAtWork({ status }: Child): boolean {
  return !isTerminal(status);
}

function pickOf<Item>(items: readonly Item[], pick: number): Item | null {
  return items[pick % Math.max(1, items.length)] ?? null;
}

function raise(world: World, event: RunEvent): World {
  const run = afterEvent(world.run, event);
  return run === world.run ? world : { ...world, run, version: world.version + 1 };
}

function append(world: World, ...bodies: readonly StepBody[]): World {
  const added = bodies.map((body, index) => ({ seq: world.steps.length + 1 + index, atMs: NOW_MS, body }));
  return { ...world, steps: [...world.steps, ...added], history: world.history.append({ steps: added }) };
}

function withChildren(world: World, of: readonly Child[], patch: Partial<Child>): World {
  const ids = new Set(of.map(({ id }) => id));
  return { ...world, children: world.children.map((each) => (ids.has(each.id) ? { ...each, ...patch } : each)) };
}

/** What the database does of what an owner has planned: a step needs the steps it saw, a transition the whole row. */
function store(world: World, { next, version, stepSeq }: NonNullable<World["planned"]>): World {
  if (world.steps.length !== stepSeq) return world;
  const isSame = world.version === version;
  const { cancelRequestedAt, pauseRequestedAt } = world.run;
  if (cancelRequestedAt !== null || pauseRequestedAt !== null) {
    const giveBack: RunEvent =
      next.do === "hold" ? { type: "Held", hold: next.hold } : { type: "Released", retryAt: null };
    return isSame ? raise(world, giveBack) : world;
  }
  switch (next.do) {
    case "read_facts":
      return append({ ...world, unread: [] }, ...next.facts.map(({ body }) => body));
    case "start_children":
      return start(world, next);
    case "stop_children": {
      const ids = new Set(next.children.map(({ id }) => id));
      return withChildren(
        world,
        world.children.filter((child) => ids.has(child.id) && isAtWork(child)),
        { stopRequested: true },
      );
    }
    case "write_result":
      return append(world, aResult(next.call.id, { result: next.result, output: next.output }));
    case "call_model":
      return append(world, aReply([], { turn: next.turn, outcome: SUCCEEDED }));
    case "hold": {
      const asked = next.requests.map(({ call }) => anApproval(call));
      const held: RunEvent = { type: "Held", hold: next.hold };
      return isSame ? raise({ ...world, approvals: [...world.approvals, ...asked] }, held) : world;
    }
    case "end":
      return isSame ? raise(world, { type: "Ended", status: next.status, outcome: next.outcome, reason: null }) : world;
    default:
      throw new Error(`A call with children is never planned so: ${next.do}`);
  }
}

function start(world: World, next: Extract<Next, { do: "start_children" }>): World {
  const { settings, run } = world;
  const { try: number, approvalId } = next;
  const mayStart = approvalId !== null || !settings.isGated || hasStarted(world, number);
  if (!mayStart) throw new Error("Children are started that nobody has released");
  const first = Array.from({ length: Math.min(settings.effect.atOnce, settings.total) }, (_, ordinal) => ordinal);
  const ordinals = next.ordinals ?? first;
  const children = ordinals.map((ordinal) => aChild(ordinal, { id: `${ordinal}/${number}`, try: number }));
  const { total } = settings;
  const begun = append(world, { kind: "children_started", callId: "call_1", try: number, ordinals, total });
  const approvals = world.approvals.map((each) =>
    each.id === approvalId ? { ...each, state: "spent" as const } : each,
  );
  const liveChildren = run.liveChildren + children.length;
  return { ...begun, approvals, children: [...begun.children, ...children], run: { ...run, liveChildren } };
}

function hasStarted({ steps: rows }: World, number: number): boolean {
  return rows.some(({ body }) => body.kind === "children_started" && body.try === number);
}

/** The ends of these children are counted, one after the other; the last wakes the parent if it has to act. */
function tell(world: World, untold: readonly Child[]): World {
  const hold = presentHold(world.run);
  const liveChildren = world.run.liveChildren - untold.length;
  const after = withChildren({ ...world, run: { ...world.run, liveChildren } }, untold, { ended: true });
  const last = world.steps.findLast(({ body }) => body.kind === "children_started");
  const completesHold = wakes(after, hold, last === undefined ? [] : [last]);
  const facts = untold.map((_, index) => factArrived("child", completesHold && index === untold.length - 1));
  const told = facts.reduce(raise, withChildren(world, untold, { ended: true }));
  if (hold?.waitingFor.kind !== "child") return told;
  const telling = { wakes: completesHold, wakesByAll: wakes(after, hold), hasToAct: !waitsAsBefore(after, hold) };
  return { ...told, tellings: [...told.tellings, telling] };
}
