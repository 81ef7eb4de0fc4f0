import type { NodeStart, WorkflowHold } from "./decision.ts";
import { gatesOf } from "./gates.ts";
import type { Node } from "./node.ts";
import { passOver, settledStart, workStart } from "./starts.ts";
import { type Survey, standingsIn } from "./survey.ts";

type Starts = { readonly value: readonly NodeStart[] } | WorkflowHold;

/** A node whose work may start: as a whole, or (a map) so many of its items. */
interface Candidate {
  readonly node: Node;
  readonly items: readonly (number | null)[];
}

/** What starts next: what settles by itself, alone, or else work, as much as there is room for. */
export function nextStarts(survey: Survey): Starts {
  const settled: NodeStart[] = mayStart(survey, "unneeded").map(({ node }) => passOver(survey, node));
  const whole = new Map<Node, Candidate>();
  for (const { node, standing } of mayStart(survey, "ready")) {
    const start = settledStart(survey, node, standing.again);
    if ("do" in start) return start;
    if (start.value !== null) settled.push(start.value);
    else whole.set(node, { node, items: [null] });
  }
  return settled.length > 0 ? { value: settled } : workStarts(survey, whole);
}

/** Maps that have begun go on; what is left of the room goes to the others, in the order of their declaration. */
function workStarts(survey: Survey, whole: ReadonlyMap<Node, Candidate>): Starts {
  const maps = standingsIn(survey, "partway").map(({ node, standing: { hasBegun, toStart } }) => ({
    hasBegun,
    candidate: { node, items: toStart },
  }));
  const begun = maps.filter(({ hasBegun }) => hasBegun).map(({ candidate }) => candidate);
  const listed = new Map(maps.filter(({ hasBegun }) => !hasBegun).map(({ candidate }) => [candidate.node, candidate]));
  const others = [...survey.workflow.nodes.values()].flatMap((node) => whole.get(node) ?? listed.get(node) ?? []);
  const room = Math.max(0, survey.workflow.parallel - underWay(survey, begun));
  return startAll(survey, [...begun, ...others.slice(0, room)]);
}

function startAll(survey: Survey, candidates: readonly Candidate[]): Starts {
  const starts: NodeStart[] = [];
  for (const { node, items } of candidates) {
    for (const item of items) {
      const start = workStart(survey, node, item);
      if ("do" in start) return start;
      starts.push(start.value);
    }
  }
  return { value: starts };
}

/** How many nodes have begun and not ended. */
function underWay({ index }: Survey, begun: readonly Candidate[]): number {
  return new Set([...begun.map(({ node }) => node.name), ...[...index.open].map(({ node }) => node)]).size;
}

/** Nodes that stand like this, without those of which something is still open that was sent back. */
function mayStart<Is extends "ready" | "unneeded">(survey: Survey, is: Is) {
  const { workflow, clearing } = survey;
  return standingsIn(survey, is).filter(({ node }) => !gatesOf(workflow, node.name).some((gate) => clearing.has(gate)));
}
