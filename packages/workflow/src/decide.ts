import type { JsonValue, Outcome } from "@holdpoint/core";
import type { Decision, WorkflowHold } from "./decision.ts";
import { guarded, holdAt, shortened } from "./guard.ts";
import type { Execution, History } from "./history.ts";
import { type HistoryIndex, type Indexed, indexHistory } from "./index-history.ts";
import { toJson } from "./json.ts";
import { known } from "./known.ts";
import { nextStarts } from "./next-starts.ts";
import type { ScopeFunction } from "./node.ts";
import { fitting, readAs } from "./read-output.ts";
import { scopeFor } from "./scope.ts";
import type { Problem } from "./standing.ts";
import { type Survey, standingsIn, surveyOf } from "./survey.ts";
import type { Workflow } from "./workflow.ts";

/**
 * What comes next in a workflow, from its history alone: nothing is remembered, so that whoever reads the rows anew, after
 * a wait or a crash, decides the same.
 *
 * - A person decides before anything new starts; what is open meanwhile goes on.
 * - What needs nothing outside (conditions, verdicts, lists) is settled first, by itself.
 * - A map that is under way goes on before another node starts; otherwise nodes start in the order of their declaration.
 * - The end waits for all that is open.
 */
export function decide(workflow: Workflow, history: History & Partial<Indexed>): Decision {
  const index = history.index ?? indexHistory(history);
  const stranger = strangerIn(workflow, history, index);
  if (stranger !== undefined) return strange(workflow, stranger);
  const input = readAs(workflow.input, history.input);
  if (!input.ok) return blocked("input", input.message);
  const survey = surveyOf(workflow, { ...history, index }, input.value);
  const isOpen = index.open.size > 0;
  const [no] = standingsIn(survey, "blocking");
  if (no !== undefined) return isOpen ? { do: "wait" } : blocked(no.node.name, no.standing.why);
  const [held] = standingsIn(survey, "held");
  if (held !== undefined) return holdOf(survey, held.node.name, held.standing.problem);
  const starts = nextStarts(survey);
  if ("do" in starts) return starts;
  if (starts.value.length > 0) return { do: "start", nodes: starts.value };
  return isOpen ? { do: "wait" } : finish(survey);
}

/** The first execution of a node that is none of this workflow's. */
function strangerIn({ nodes }: Workflow, { executions }: History, { rounds }: HistoryIndex): Execution | undefined {
  const isKnown = [...rounds.keys()].every((name) => nodes.has(name));
  return isKnown ? undefined : executions.find(({ node }) => !nodes.has(node));
}

function strange({ name, version }: Workflow, { node, round, item, callId }: Execution): WorkflowHold {
  const message = `"${node}" is no node of ${name} ${version}: the history belongs to another definition`;
  return holdAt({ node, round, item, callId }, "graph_error", message);
}

function holdOf({ rounds }: Survey, node: string, { reason, item, callId, message }: Problem): WorkflowHold {
  return holdAt({ node, round: known(rounds, node), item, callId }, reason, message);
}

function blocked(step: string, why: string): Decision {
  return { do: "end", outcome: { kind: "blocked", step, reason: shortened(why) }, output: null };
}

/** The end of a workflow in which every node is complete. */
function finish(survey: Survey): Decision {
  const { workflow, index } = survey;
  const { result } = workflow;
  if (result === null) return { do: "end", outcome: outcomeOf(survey, []), output: null };
  if (index.resultChoice === "skip") return { do: "end", outcome: outcomeOf(survey, ["the result"]), output: null };
  const place = { node: null, round: 1, item: null, callId: null };
  const output = guarded(place, "result", () => resultOf(survey, result));
  return "do" in output ? output : { do: "end", outcome: outcomeOf(survey, []), output: output.value };
}

function resultOf(survey: Survey, result: ScopeFunction): JsonValue {
  const made = toJson(result(scopeFor(survey, { node: null, item: null })));
  fitting(readAs(survey.workflow.output, made));
  return made;
}

/** Only what became of the nodes counts; nothing is read from what they wrote. */
function outcomeOf(survey: Survey, missing: readonly string[]): Outcome {
  const complete = standingsIn(survey, "complete");
  const skipped = complete.filter(({ standing }) => standing.how === "skipped").map(({ node }) => node.name);
  const inPart = complete.filter(({ standing }) => standing.isPartial).map(({ node }) => node.name);
  const reasons = [...named("skipped", [...skipped, ...missing]), ...named("achieved in part", inPart)];
  return reasons.length === 0 ? { kind: "succeeded" } : { kind: "partial", reason: shortened(reasons.join("; ")) };
}

function named(what: string, names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : [`${what}: ${names.join(", ")}`];
}
