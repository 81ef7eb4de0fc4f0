import { familyIn, type Next, recordOf } from "@holdpoint/core";
import { type ChildrenStart, newId, stopChildren, tellParents } from "@holdpoint/store";
import { isFor, refuseCall } from "./act-on-call.ts";
import { FAN_OUT_LIMIT } from "./define-child-runs.ts";
import type { ChildRunRequest } from "./define-tool.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";
import { startRefused } from "./start-refused.ts";

type StartChildren = Extract<Next, { do: "start_children" }>;
type StopChildren = Extract<Next, { do: "stop_children" }>;

/** How deep runs may be nested below the first. */
const DEPTH_LIMIT = 5;
/** The most runs that may ever be started below one run, at every depth. */
const TREE_LIMIT = 1_000;

/** Starts children of a call: the rows of the runs and the step that says so are one commit. */
export async function actOnChildren(act: Act, next: StartChildren): Promise<Stored> {
  const { run, context } = act;
  const { call } = next;
  const tool = context.agent.tools.get(call.tool);
  if (tool === undefined || tool.childRuns === null || !isFor(tool, call))
    return refuseCall(act, call, "incompatible_tool");
  const asked = tool.childRuns(call.args as Parameters<typeof tool.childRuns>[0]);
  const family = familyIn(run.view, call.id);
  if (family !== null && family.total !== asked.length) return refuseCall(act, call, "incompatible_tool");
  const problem = problemOf(asked, run.view.run.ancestors.length);
  if (problem !== null) return answer(act, next, problem);
  const start = startOf(act, next, asked);
  const begun = await run.commit({ steps: [], start, currentStep: call.tool, progress: false });
  if (begun.result !== "taken") return begun;
  if (begun.started) {
    await context.announce(start.children.map(({ id: runId, agent }) => ({ agent, runId, version: 1 })));
    return begun;
  }
  const { refusal } = begun;
  if (refusal === null || refusal === "ancestor_stopped") return startRefused(act, refusal);
  return refuseCall(act, call, REFUSALS[refusal]);
}

const REFUSALS = {
  agent_unknown: "child_agent_unknown",
  tree_limit: "limit_child_runs",
  line_is_live: "child_line_is_live",
} as const;

/** What is wrong with the runs that are asked for, where a model can see to it. */
function problemOf(asked: readonly ChildRunRequest[], depth: number): string | null {
  if (asked.length > FAN_OUT_LIMIT) {
    return `NOT EXECUTED. One call may start ${FAN_OUT_LIMIT} runs at most; this one asks for ${asked.length}.`;
  }
  if (depth >= DEPTH_LIMIT)
    return `NOT EXECUTED. Runs may be nested ${DEPTH_LIMIT} deep at most: do it without this tool.`;
  return null;
}

function startOf({ run }: Act, next: StartChildren, asked: readonly ChildRunRequest[]): ChildrenStart {
  const { call, try: number, approvalId } = next;
  const atOnce = call.effect.kind === "children" ? call.effect.atOnce : asked.length;
  const ordinals = next.ordinals ?? Array.from({ length: Math.min(atOnce, asked.length) }, (_, ordinal) => ordinal);
  const children = ordinals.flatMap((ordinal) => {
    const request = asked[ordinal];
    return request === undefined ? [] : [{ ...request, id: newId(), sessionId: newId(), ordinal }];
  });
  return {
    body: { kind: "children_started", callId: call.id, try: number, ordinals, total: asked.length },
    children,
    // Each time that an operator lets it go on grants as many again.
    treeLimit: TREE_LIMIT * (1 + recordOf(run.view.history, call.id).retriesOrdered),
    argsHash: call.argsHash,
    approvalId,
    policyRevision: run.view.policyRevision,
  };
}

function answer({ run }: Act, { call }: StartChildren, output: string): Promise<Stored> {
  return run.commit({
    steps: [{ kind: "tool_result", callId: call.id, result: "denied", output }],
    currentStep: call.tool,
    progress: false,
  });
}

/** Asks children to stop for which nobody waits any more; each stops in its own time. */
export async function actOnStop({ run, context }: Act, children: StopChildren["children"]): Promise<Stored> {
  const { store, workerId } = context;
  const asked = { parentId: run.view.run.id, childIds: children.map(({ id }) => id) };
  await run.untilStored(async () => {
    const { moved, errors } = await stopChildren(store, asked);
    const [first] = errors;
    if (first !== undefined) throw first;
    // Those that nobody worked on have stopped at once.
    const ended = moved.filter(({ state }) => state.endedAt !== null).map(({ id }) => id);
    if (ended.length > 0) await tellParents(store, ended, { kind: "worker", id: workerId });
  });
  return run.reload();
}
