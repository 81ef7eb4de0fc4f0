import type { ChildrenStarted } from "./call-record.ts";
import { recordOf } from "./history.ts";
import type { JsonObject } from "./json.ts";
import type { Next, PlanInput } from "./next.ts";
import { findDenial } from "./policy.ts";
import { operatorHold } from "./rest.ts";
import { DEFAULT_DEADLINES, type Hold } from "./state.ts";
import { isTerminal } from "./status.ts";
import type { Call, Child, ChildrenProperties, ResultKind, Step } from "./step.ts";

/** A call that starts child runs. */
export type ParentCall = Call & { readonly effect: ChildrenProperties };

/** Whether this call starts child runs. */
export function isParentCall(call: Call): call is ParentCall {
  return call.effect.kind === "children";
}

/** What has become of the children of one call. */
export interface Family {
  readonly total: number;
  /** The try that was started last. */
  readonly try: number;
  /** The latest of each place. */
  readonly children: readonly Child[];
  /** The places of those that were started and are not there any more: nobody knows what they did. */
  readonly vanished: readonly number[];
}

/** The children of a call as far as these steps say that they have been started; null before the first. */
export function familyOf(
  { steps, children }: { readonly steps: readonly Step[]; readonly children: readonly Child[] },
  callId: string,
): Family | null {
  const starts = steps.flatMap(({ body }) =>
    body.kind === "children_started" && body.callId === callId ? [body] : [],
  );
  return familyAfter(starts, children, callId);
}

/** The same, from a run's history. */
export function familyIn(
  { history, children }: Pick<PlanInput, "history" | "children">,
  callId: string,
): Family | null {
  return familyAfter(recordOf(history, callId).starts, children, callId);
}

function familyAfter(starts: readonly ChildrenStarted[], children: readonly Child[], callId: string): Family | null {
  const last = starts.at(-1);
  if (last === undefined) return null;
  const latest = new Map<number, Child>();
  for (const child of children.filter((each) => each.callId === callId)) {
    const known = latest.get(child.ordinal);
    if (known === undefined || known.try < child.try) latest.set(child.ordinal, child);
  }
  const startedLast = new Map(
    starts.flatMap(({ ordinals, try: number }) => ordinals.map((ordinal) => [ordinal, number])),
  );
  const vanished = [...startedLast].filter(([ordinal, number]) => (latest.get(ordinal)?.try ?? 0) < number);
  return {
    total: last.total,
    try: last.try,
    children: [...latest.values()].toSorted((a, b) => a.ordinal - b.ordinal),
    vanished: vanished.map(([ordinal]) => ordinal),
  };
}

/**
 * What comes next for a call with children; null if they have to be started, for the first time or by an operator's word
 * anew, which is judged as every start.
 */
export function planChildren(input: PlanInput, call: ParentCall): Next | null {
  const family = familyIn(input, call.id);
  if (family === null) return null;
  const { effect } = call;
  if (!isOver(effect, family)) return planRest(input, call, family);
  const stop = stopRest(input, call);
  if (stop !== null) return stop;
  if (isAchieved(effect, family)) return result(call, family);
  if (recordOf(input.history, call.id).isRetryNewer || mayTryAgain(call, family)) return null;
  // What one that is gone did is for a person to find out, whatever is said of those that are blocked.
  if (family.vanished.length > 0) return hold(operatorHold("backing_missing", call.id));
  if (effect.onBlocked === "operator" && family.children.some(isBlocked)) {
    return hold(operatorHold("child_blocked", call.id));
  }
  return result(call, family);
}

/** Starts those that have to wait for a place, or waits for the end of one. */
function planRest(input: PlanInput, call: ParentCall, family: Family): Next {
  const ordinals = startable(call.effect, family);
  if (ordinals.length === 0) return hold(childHold(call, family));
  // What is forbidden since is not started; who has been released goes on.
  if (findDenial(input.denials, call) !== null) return hold(operatorHold("policy_changed", call.id));
  return { do: "start_children", call, try: family.try, ordinals, approvalId: null };
}

/** The start of a call's children: all of them, or those that an operator lets try again. */
export function startOf(input: PlanInput, call: ParentCall, approvalId: string | null): Next {
  const family = familyIn(input, call.id);
  if (family === null) return { do: "start_children", call, try: 1, ordinals: null, approvalId };
  const ordinals = placesOf(family, "bad").slice(0, call.effect.atOnce);
  return { do: "start_children", call, try: family.try + 1, ordinals, approvalId };
}

/**
 * The answer of a call that an operator passes over; null if nothing was started for it. What its children achieved is
 * told: nobody may hear that it was not executed.
 */
export function skippedFamily(input: PlanInput, call: ParentCall): FamilyAnswer | null {
  const family = familyIn(input, call.id);
  if (family === null) return null;
  if (isAchieved(call.effect, family)) return answerOf(call, family);
  return { result: "skipped", output: { note: SKIPPED, ...outputOf(family) } };
}

const SKIPPED = "An operator passed over what is left of this call: go on with what these runs achieved.";

/** What a call whose new try is turned down ends with: what its children achieved before; a person's own answer stays. */
export function afterRefusal(input: PlanInput, call: ParentCall, refusal: WriteResult): Next {
  const family = familyIn(input, call.id);
  return family === null || refusal.result === "answered" ? refusal : result(call, family);
}

/** Asks those of a call's children to stop for which nobody waits any more; null if there are none. */
export function stopRest(input: Pick<PlanInput, "children">, call: Call): Next | null {
  // Who has ended needs no word, even where the end has not been counted yet.
  const children = input.children.filter(
    ({ callId, status, stopRequested }) => callId === call.id && !isTerminal(status) && !stopRequested,
  );
  return children.length === 0 ? null : { do: "stop_children", call, children };
}

/** The hold of a run that has nothing more to do and has children that have not stopped yet. */
export function stoppingHold({ children }: Pick<PlanInput, "children">): Hold {
  return {
    kind: "dependency",
    waitingFor: { kind: "child", principal: namesOf(children), subject: null, reason: "children_stopping" },
    deadline: { inMs: DEFAULT_DEADLINES.dependencyMs },
    onDeadline: "operator",
  };
}

/**
 * Whether the end of children gives a parent that waits for them something to do. `family` is that of the call it waits
 * for; null if it waits for those of several calls, or until all have stopped.
 */
export function wakesParent(
  hold: Hold | null,
  { effect, family, liveChildren }: { effect: ChildrenProperties | null; family: Family | null; liveChildren: number },
): boolean {
  const awaited = hold?.waitingFor ?? null;
  if (awaited?.kind === "operator" && awaited.reason === "deadline_passed") {
    return effect !== null && family !== null && isOver(effect, family);
  }
  if (awaited?.kind !== "child") return false;
  if (awaited.reason === "children_stopping") return liveChildren === 0;
  if (effect === null || family === null) return true;
  return isOver(effect, family) || startable(effect, family).length > 0;
}

type WriteResult = Extract<Next, { do: "write_result" }>;
type FamilyAnswer = Pick<WriteResult, "result" | "output">;

type Standing = "to_start" | "live" | "good" | "bad";

function standings(family: Family): readonly Standing[] {
  const known = new Map(family.children.map((child) => [child.ordinal, standingOf(child, family)]));
  for (const ordinal of family.vanished) known.set(ordinal, "bad");
  return Array.from({ length: family.total }, (_, ordinal) => known.get(ordinal) ?? "to_start");
}

function placesOf(family: Family, standing: Standing): readonly number[] {
  return standings(family).flatMap((each, ordinal) => (each === standing ? [ordinal] : []));
}

/** What did not achieve anything in an earlier try has its place in the present one still before it. */
function standingOf(child: Child, family: Family): Standing {
  if (!child.ended) return "live";
  if (isGood(child)) return "good";
  return child.try < family.try ? "to_start" : "bad";
}

function isOver(effect: ChildrenProperties, family: Family): boolean {
  const isAllOver = standings(family).every((each) => each === "good" || each === "bad");
  return isAllOver || isAchieved(effect, family);
}

function isAchieved(effect: ChildrenProperties, family: Family): boolean {
  return family.children.filter(isGood).length >= needed(effect, family);
}

/** How many have to achieve something. */
function needed({ wait }: ChildrenProperties, { total }: Family): number {
  return wait === "all" ? total : wait;
}

/** The places whose children may be started now. */
function startable({ atOnce }: ChildrenProperties, family: Family): readonly number[] {
  return placesOf(family, "to_start").slice(0, Math.max(0, atOnce - placesOf(family, "live").length));
}

function isGood({ ended, status, outcome }: Child): boolean {
  return ended && status === "completed" && outcome !== null && outcome.kind !== "blocked";
}

function isBlocked({ ended, outcome }: Child): boolean {
  return ended && outcome?.kind === "blocked";
}

/**
 * Whether those that achieved nothing are started once more without a person's word: they have all failed, and the call has
 * tries left. Who was stopped, is blocked, or has vanished is a person's business.
 */
function mayTryAgain({ retries }: ParentCall, family: Family): boolean {
  if (family.try > retries) return false;
  const bad = new Set(placesOf(family, "bad"));
  const failed = family.children.filter(
    ({ ordinal, ended, status }) => bad.has(ordinal) && ended && status === "failed",
  );
  return failed.length > 0 && failed.length === bad.size;
}

function childHold(call: ParentCall, { children }: Family): Hold {
  const live = children.filter(({ ended }) => !ended);
  return {
    kind: "dependency",
    waitingFor: { kind: "child", principal: namesOf(live), subject: call.id, reason: "child_running" },
    deadline: { inMs: call.effect.withinMs },
    onDeadline: "operator",
  };
}

/** One run by its id, several by the first and a number. */
function namesOf(children: readonly Child[]): string {
  const live = children.filter(({ ended }) => !ended);
  const [first] = live;
  if (first === undefined) return "child runs";
  return live.length === 1 ? first.shownId : `${first.shownId} and ${live.length - 1} more`;
}

function result(call: ParentCall, family: Family): Next {
  return { do: "write_result", call, ...answerOf(call, family) };
}

function answerOf({ effect }: ParentCall, family: Family): FamilyAnswer {
  return { result: resultKind(effect, family), output: outputOf(family) };
}

/** Only what a child's own outcome says counts; nothing is read from what it wrote. */
function resultKind(effect: ChildrenProperties, family: Family): ResultKind {
  const good = family.children.filter(isGood);
  const succeeded = good.filter(({ outcome }) => outcome?.kind === "succeeded");
  if (succeeded.length >= needed(effect, family)) return "succeeded";
  if (good.length > 0) return "partial";
  return family.children.some(isBlocked) ? "blocked" : "failed";
}

function outputOf({ children }: Family): JsonObject {
  return {
    children: children.map(({ shownId, agent, status, outcome, endReason, result: brought }) => ({
      run: shownId,
      agent: agent.name,
      // Who was only asked to stop has not stopped yet.
      status: isTerminal(status) ? status : "stopping",
      outcome: outcome?.kind ?? null,
      ...(outcome?.kind === "blocked" ? { step: outcome.step } : {}),
      reason: outcome !== null && "reason" in outcome ? outcome.reason : endReason,
      result: brought,
    })),
  };
}

function hold(held: Hold): Next {
  return { do: "hold", hold: held, requests: [] };
}
