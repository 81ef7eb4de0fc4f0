import type { Execution, History } from "./history.ts";
import { type HistoryIndex, type Indexed, roundOf } from "./index-history.ts";
import { known } from "./known.ts";
import { LIMITS } from "./limits.ts";
import type { Node } from "./node.ts";
import { readAs } from "./read-output.ts";
import { isMap } from "./standing.ts";
import { type Survey, surveyOf } from "./survey.ts";
import type { Workflow } from "./workflow.ts";

/** Whether a workflow may go on with another definition. */
export type Migration = { readonly ok: true } | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Whether an instance that was started with `from` may go on with `to`: what it has done must mean the same there. So each
 * node that has been started is still there, of the same kind and in the same round; what it brought fits its new schema;
 * what is open is still the same work; and nothing new comes before what has been started.
 */
export function checkMigration(from: Workflow, to: Workflow, history: History & Partial<Indexed>): Migration {
  const kept = {
    executions: history.executions.filter(({ node }) => to.nodes.has(node)),
    choices: history.choices.filter(({ node }) => node === null || to.nodes.has(node)),
  };
  const input = readAs(to.input, history.input);
  const before = surveyOf(from, history, null);
  const after = surveyOf(to, kept, null);
  const started = [...from.nodes.values()].filter(({ name }) => before.index.rounds.has(name));
  const problems = [
    ...(from.name === to.name ? [] : [`it is the workflow "${from.name}", not "${to.name}"`]),
    ...(input.ok ? [] : [`its input does not fit: ${input.message}`]),
    ...started.flatMap((node) => checkStarted(node, { before, after })),
    ...[...before.index.open].flatMap((execution) => checkOpen(execution, from, to)),
  ];
  return problems.length === 0 ? { ok: true } : { ok: false, problems: problems.slice(0, LIMITS.problems) };
}

interface Both {
  readonly before: Survey;
  readonly after: Survey;
}

function checkStarted(node: Node, { before, after }: Both): readonly string[] {
  const { name } = node;
  const there = after.workflow.nodes.get(name);
  if (there === undefined) return [`node "${name}" has been started, and is not there any more`];
  if (kindOf(there) !== kindOf(node))
    return [`node "${name}" was of kind ${kindOf(node)}, and is of kind ${kindOf(there)}`];
  const round = known(before.rounds, name);
  if (known(after.rounds, name) !== round) {
    return [`node "${name}" is in round ${round}, and other gates would send it back: keep those that have`];
  }
  if (!isInRound(before.index, name, round)) return [];
  return [...checkFit(name, { before, after }), ...checkOrder(node, there, after)];
}

function kindOf(node: Node): string {
  const kind = node.kind === "gate" ? `${node.gate} gate` : node.kind;
  return isMap(node) ? `${kind} for each item` : kind;
}

function isInRound(index: HistoryIndex, name: string, round: number): boolean {
  const { own, items } = roundOf(index, name, round);
  return own.execution !== null || items.size > 0;
}

/** What was complete stays so. */
function checkFit(name: string, { before, after }: Both): readonly string[] {
  const now = known(after.standings, name);
  if (now.is !== "held" || known(before.standings, name).is === "held") return [];
  return [`what node "${name}" brought does not fit: ${now.problem.message}`];
}

/** Nothing comes before it now that has not been done. */
function checkOrder(node: Node, there: Node, { standings }: Survey): readonly string[] {
  return there.after
    .filter((name) => !node.after.includes(name) && known(standings, name).is !== "complete")
    .map((name) => `node "${name}" would come before "${node.name}", which has been started`);
}

function checkOpen({ node }: Execution, from: Workflow, to: Workflow): readonly string[] {
  const [was, is] = [from.nodes.get(node), to.nodes.get(node)];
  if (was === undefined || is === undefined || workOf(was) === workOf(is)) return [];
  return [`node "${node}" is open with ${workOf(was)}, and would be ${workOf(is)}`];
}

/** Who does the work of a node. */
function workOf(node: Node): string {
  if (node.kind === "agent") return `agent ${node.agent.name} ${node.agent.version}`;
  if (node.kind === "workflow") return `workflow ${node.workflow.name} ${node.workflow.version}`;
  return node.kind === "tool" ? `tool ${node.tool}` : "a person";
}
