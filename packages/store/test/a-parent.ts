// Parents and the child runs that they have started, made by the store's own verbs.

import type { Call, ChildrenProperties, Hold } from "@holdpoint/core";
import {
  type ChildrenStart,
  type CommitResult,
  commitSteps,
  type LoadedRun,
  newId,
  type Run,
  type StepCommit,
  type Store,
  transitionOne,
} from "../src/index.ts";
import { AGENT, aCall, aCommit, aReply, aWorker, claim } from "./a-run.ts";
import { aClaimedRun, ownerOf, reload } from "./a-status.ts";

export const CHILDREN: ChildrenProperties = {
  kind: "children",
  wait: "all",
  atOnce: 10,
  onBlocked: "operator",
  equalCallsAreDistinct: false,
  withinMs: 86_400_000,
};

/** A call that starts child runs. */
export function aParentCall(overrides: Partial<Call> = {}): Call {
  return aCall({ tool: "delegate", effect: CHILDREN, ...overrides });
}

/** The start of the first `count` children of a call. */
export function aChildrenStart(
  { run, policyRevision }: LoadedRun,
  call: Call,
  overrides: Partial<ChildrenStart> & { readonly count?: number } = {},
): ChildrenStart {
  const { count = 2, ...rest } = overrides;
  const ordinals = Array.from({ length: count }, (_, ordinal) => ordinal);
  return {
    body: { kind: "children_started", callId: call.id, try: 1, ordinals, total: count },
    children: ordinals.map((ordinal) => ({
      id: newId(),
      sessionId: newId(),
      ordinal,
      agent: AGENT,
      goal: `part ${ordinal} of ${run.goal}`,
      input: null,
    })),
    treeLimit: 1_000,
    argsHash: call.argsHash,
    approvalId: null,
    policyRevision,
    ...rest,
  };
}

/** A claimed run that has asked for this call. */
export async function aPlanning(store: Store, call: Call, options: { readonly run?: Run } = {}): Promise<LoadedRun> {
  const claimed =
    options.run === undefined ? await aClaimedRun(store) : await claim(store, options.run.id, await aWorker(store));
  await commitOne(store, aCommit(claimed, { steps: [aReply([call])], calls: [call] }));
  return reload(store, claimed.run.id);
}

/** A claimed run with started children, and their ids. */
export async function aParent(
  store: Store,
  { count = 2, call = aParentCall(), run }: { readonly count?: number; readonly call?: Call; readonly run?: Run } = {},
) {
  const planning = await aPlanning(store, call, run === undefined ? {} : { run });
  const start = aChildrenStart(planning, call, { count });
  await commitOne(store, startCommit(planning, start));
  const parent = await reload(store, planning.run.id);
  return { parent, call, childIds: start.children.map(({ id }) => id) };
}

/** A commit that only starts children. */
export function startCommit(claimed: LoadedRun, start: ChildrenStart): StepCommit {
  return { ...aCommit(claimed), start };
}

export async function commitOne(store: Store, commit: StepCommit): Promise<CommitResult> {
  const [result] = await commitSteps(store, [commit]);
  if (result === undefined || result instanceof Error) throw result ?? new Error("no result");
  return result;
}

/** Waits for the children of a call. */
export function childHold(call: Call): Hold {
  return {
    kind: "dependency",
    waitingFor: { kind: "child", principal: "a child", subject: call.id, reason: "child_running" },
    deadline: { inMs: 60_000 },
    onDeadline: "operator",
  };
}

/** Ends a child, as its worker does. */
export async function endChild(
  store: Store,
  childId: string,
  outcome: Run["state"]["outcome"] = { kind: "succeeded" },
): Promise<Run> {
  const workerId = await aWorker(store);
  const claimed = await claim(store, childId, workerId);
  const ended = await transitionOne(store, {
    run: claimed.run,
    events: [{ type: "Ended", status: "completed", outcome, reason: null }],
    actor: { kind: "worker", id: workerId },
    writes: { result: "what it brought" },
  });
  if (ended.result !== "accepted") throw new Error(`not ended: ${ended.result}`);
  return ended.run;
}

/** Gives a parent back to wait for the children of its call. */
export async function holdParent(store: Store, parent: LoadedRun, call: Call): Promise<Run> {
  const held = await transitionOne(store, {
    run: parent.run,
    events: [{ type: "Held", hold: childHold(call) }],
    actor: ownerOf(parent),
  });
  if (held.result !== "accepted") throw new Error(`not held: ${held.result}`);
  return held.run;
}
