import { callOf } from "./as-it-runs.ts";
import { brokenLimit } from "./limits.ts";
import type { HoldNext, Next, PlanInput, PollNext } from "./next.ts";
import { planCall } from "./plan-call.ts";
import { operatorHold } from "./rest.ts";
import type { Hold } from "./state.ts";
import type { Call } from "./step.ts";
import { isDoneOnce, workOf } from "./work.ts";

/**
 * What comes next for a run whose turns a graph decides: every open call that can go on does, in the order in which they
 * were made; then the graph is asked, with what the run would wait for if that starts nothing. A call that is to be answered
 * from the record of an equal one waits for that; what has become of an effect that the other side settles in its own time
 * is asked when nothing else can go on.
 */
export function planGraph(input: PlanInput): Next {
  const version = migrationAsked(input);
  if (version !== null) return { do: "migrate", version };
  const open = openWork(input);
  if ("do" in open) return open;
  const { polls, waiting } = open;
  const reported = polls.find(({ call }) => isReported(input, call));
  if (reported !== undefined) return reported;
  if (input.unread.length > 0) return { do: "read_facts", facts: input.unread };
  const [poll] = polls;
  const { graphTurns: turns, retriesOrdered } = input.history.known.totals;
  const limit = turns >= input.limits.turns + retriesOrdered ? "limit_turns" : brokenLimit(input);
  if (limit !== null) return poll ?? { do: "hold", hold: operatorHold(limit, null), requests: [] };
  if (poll === undefined) return { do: "decide", turn: turns + 1, waiting };
  const beside = waiting?.hold.kind === "dependency" ? { beside: waiting.hold } : {};
  return { do: "decide", turn: turns + 1, waiting: { ...poll, ...beside } };
}

/** The version in which an operator wants the run to go on; null if it does, or nobody does any more. */
function migrationAsked({ history, version }: PlanInput): string | null {
  const { versionAsked } = history.known.totals;
  return versionAsked === version ? null : versionAsked;
}

interface OpenWork {
  readonly polls: readonly PollNext[];
  readonly waiting: HoldNext | null;
}

/** What the first open call that can go on does next; if none can, what they wait for. */
function openWork(input: PlanInput): Next | OpenWork {
  const holds: HoldNext[] = [];
  const polls: PollNext[] = [];
  const before = new Set<string>();
  for (const id of input.history.known.openIds) {
    const call = callOf(input, id);
    const work = workOf(call);
    if (isDoneOnce(call) && before.has(work)) continue;
    before.add(work);
    const next = planCall(input, call);
    if (next.do === "poll") polls.push(next);
    // A person decides before anything else goes on.
    else if (next.do !== "hold" || next.hold.kind === "operator") return next;
    else holds.push(next);
  }
  return { polls, waiting: together(input, holds) };
}

function isReported({ unread }: PlanInput, { id }: Call): boolean {
  return unread.some(({ body }) => body.kind === "callback" && body.callId === id);
}

/**
 * One hold for all that a run waits for at once. People are asked when nothing else is under way; of the rest the first
 * deadline counts, and where children are among it every end of one wakes the run.
 */
function together({ nowMs }: PlanInput, holds: readonly HoldNext[]): HoldNext | null {
  const [first, ...rest] = holds.filter(({ hold }) => hold.kind === "dependency");
  if (first === undefined) return holds[0] ?? null;
  const hold = rest.reduce((one, other) => bothHolds(one, other.hold, nowMs), first.hold);
  return { do: "hold", hold, requests: [] };
}

/** A wait for two things outside at once. */
export function bothHolds(one: Hold, other: Hold, nowMs: number): Hold {
  const first = atMs(other, nowMs) < atMs(one, nowMs) ? other : one;
  const { waitingFor } = [one, other].find((each) => each.waitingFor.kind === "child") ?? first;
  return { ...first, waitingFor: { ...waitingFor, subject: null } };
}

function atMs({ deadline }: Hold, nowMs: number): number {
  return "at" in deadline ? deadline.at : nowMs + deadline.inMs;
}
