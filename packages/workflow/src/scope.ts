import type { JsonValue } from "@holdpoint/core";
import { lastFeedback } from "./gates.ts";
import { itemOf, type Round, roundOf, roundsOf, type Slot } from "./index-history.ts";
import { known } from "./known.ts";
import type { Node } from "./node.ts";
import { fitting, readAs, readOutput } from "./read-output.ts";
import type { ScopeValues } from "./scope-values.ts";
import { isMap, standingAt } from "./standing.ts";
import type { Survey } from "./survey.ts";

/** For whom a scope is: a node, or one item of it; node null: the workflow's result, which may read every node. */
export interface Reader {
  readonly node: Node | null;
  readonly item: number | null;
}

/** What the functions of a definition are given. Each value is read anew, so that nobody changes another's. */
export function scopeFor(survey: Survey, { node, item }: Reader): ScopeValues {
  const { workflow, input, sentBack } = survey;
  const round = node === null ? 1 : known(survey.rounds, node.name);
  const read = (name: string): Brought => {
    const other = workflow.nodes.get(name);
    if (other === undefined) throw new TypeError(`it reads "${name}", and there is no such node`);
    if (node !== null && !known(workflow.graph.upstream, node.name).has(name))
      throw new TypeError(`it reads "${name}", which does not come before it: name it in "after"`);
    return broughtBy(survey, other);
  };
  return {
    input,
    get item() {
      return itemFor(survey, { node, item });
    },
    index: item,
    round,
    feedback: node === null ? null : lastFeedback(workflow, sentBack, node.name),
    get previous() {
      return node === null || isMap(node) ? null : previousOf(survey, node);
    },
    output: (name) => {
      const brought = read(name);
      return "missing" in brought ? null : brought.value;
    },
    need: (name) => {
      const brought = read(name);
      if ("missing" in brought) throw new TypeError(`it needs what "${name}" brings, but that ${brought.missing}`);
      return brought.value;
    },
  };
}

type Brought = { readonly value: unknown } | { readonly missing: string };

/** What a node has brought in its present round, or why that is nothing. */
function broughtBy(survey: Survey, node: Node): Brought {
  const standing = known(survey.standings, node.name);
  if (standing.is !== "complete") return { missing: "is not complete" };
  if (standing.how === "passed_over") return { missing: "was passed over" };
  if (standing.how === "skipped") return whenSkipped(node);
  const there = roundOf(survey.index, node.name, known(survey.rounds, node.name));
  return { value: isMap(node) ? itemsBrought(node, there) : valueAt(node, there.own) };
}

function itemsBrought(node: Node, there: Round): readonly unknown[] {
  return there.list.map((_, item) => valueAt(node, itemOf(there, item)));
}

/** What a complete position has brought; where it was skipped, what the definition says is given instead. */
function valueAt(node: Node, slot: Slot): unknown {
  const standing = standingAt(node, slot);
  const isDone = standing?.is === "complete" && standing.how === "done";
  if (slot.execution !== null && isDone) return fitting(readOutput(node, slot.execution.output));
  const instead = whenSkipped(node);
  return "missing" in instead ? null : instead.value;
}

function whenSkipped(node: Node): Brought {
  const instead: JsonValue = "whenSkipped" in node ? node.whenSkipped : null;
  if (instead === null) return { missing: "was skipped" };
  return { value: fitting(readOutput(node, instead)) };
}

/** What the node brought when it last ran, before it was sent back. */
function previousOf(survey: Survey, node: Node): unknown {
  const now = known(survey.rounds, node.name);
  for (const round of roundsOf(survey.index, node.name).toReversed()) {
    const { execution } = roundOf(survey.index, node.name, round).own;
    const read = round < now && execution?.state === "done" ? readOutput(node, execution.output) : null;
    if (read?.ok) return read.value;
  }
  return null;
}

function itemFor(survey: Survey, { node, item }: Reader): unknown {
  if (node === null || item === null || !isMap(node))
    throw new TypeError('"item" is there only for what a map does with each item');
  const { list } = roundOf(survey.index, node.name, known(survey.rounds, node.name));
  return fitting(readAs(node.map.item, list[item]));
}
