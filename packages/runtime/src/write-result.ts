import type { Call, JsonValue, Next } from "@holdpoint/core";
import { type Artifact, type LoadedRun, loadArtifacts, NOT_KEPT } from "@holdpoint/store";
import type { WorkflowAgent } from "./bind-workflow.ts";
import type { Stored } from "./owned-run.ts";
import { asksPerson, personWord } from "./person-result.ts";
import type { Act } from "./run-context.ts";
import { isThere, OUTPUTS_LIMIT_BYTES } from "./whole-outputs.ts";

type WriteResult = Extract<Next, { do: "write_result" }>;

/** Stores the result of a call that nothing is executed for: what children came to, what a person said, what is on record. */
export async function writeResult(act: Act, next: WriteResult): Promise<Stored> {
  const { run, context } = act;
  const { call, result } = next;
  const word = asksPerson(context.agent, call) ? personWord(run.view, { call, result }) : null;
  const { artifacts = [], ...output }: Brought = word === null ? await withWhole(act, next) : { output: word };
  return run.commit({
    steps: [{ kind: "tool_result", callId: call.id, result, ...output }],
    artifacts,
    currentStep: call.tool,
    progress: false,
  });
}

/** Stores that a person has released what a node asked for: that is all it was for. */
export function writeRelease({ run }: Act, { call, approvalId }: Extract<Next, { do: "execute" }>): Promise<Stored> {
  const result = "succeeded";
  return run.commit({
    steps: [{ kind: "tool_result", callId: call.id, result, output: personWord(run.view, { call, result }) }],
    usedApproval: approvalId,
    currentStep: call.tool,
    progress: true,
  });
}

interface Brought {
  readonly output: JsonValue;
  readonly artifact?: string;
  readonly artifacts?: readonly Artifact[];
}

/**
 * What the only child of a workflow's node has brought is kept for the parent as well: the child may be removed before the
 * parent has ended.
 */
async function withWhole({ context, run }: Act, { call, output, artifact }: WriteResult): Promise<Brought> {
  if (artifact !== undefined) return { output, artifact };
  const { agent } = context;
  const hash = agent.kind === "workflow" ? resultOfChild(run.view, call) : null;
  if (agent.kind !== "workflow" || hash === null) return { output };
  // A tool that starts runs of its own brings what each of several has brought, and of one of these only the beginning.
  if (!isChildNode(agent, call)) return { output, artifact: NOT_KEPT };
  const load = { hashes: [hash], limitBytes: OUTPUTS_LIMIT_BYTES };
  const loaded = hash === NOT_KEPT ? [] : await run.untilStored(() => loadArtifacts(context.store, load));
  const artifacts = loaded.filter(isThere);
  return artifacts.length === 0 ? { output, artifact: NOT_KEPT } : { output, artifact: hash, artifacts };
}

/** Whether a call is a node that is one child run; a tool has its own name. */
function isChildNode({ workflow }: WorkflowAgent, { tool }: Call): boolean {
  const kind = workflow.nodes.get(tool)?.kind;
  return kind === "agent" || kind === "workflow";
}

/** Nodes have one child each, of whose tries the last one counts; of several, the first that brought too much for a step. */
function resultOfChild({ children }: Pick<LoadedRun, "children">, call: Call): string | null {
  const ended = children.filter((child) => child.callId === call.id && child.ended);
  const lastTries = new Map(ended.toSorted((a, b) => a.try - b.try).map((child) => [child.ordinal, child]));
  return [...lastTries.values()].find(({ resultArtifact }) => resultArtifact !== null)?.resultArtifact ?? null;
}
