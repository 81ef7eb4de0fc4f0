import { gatesOf, roundNow, type SentBack, sentBackBy } from "./gates.ts";
import type { History } from "./history.ts";
import { type HistoryIndex, type Indexed, indexHistory } from "./index-history.ts";
import { known } from "./known.ts";
import type { Node } from "./node.ts";
import { standingOf } from "./node-standing.ts";
import type { Standing } from "./standing.ts";
import type { Workflow } from "./workflow.ts";

/** What is decided from, with its index where it has one. */
export type Surveyed = Pick<History, "executions" | "choices"> & Partial<Indexed>;

/** A workflow and its history, with all that follows from them; made anew for each decision, and kept nowhere. */
export interface Survey {
  readonly workflow: Workflow;
  /** What the workflow was started with, as its schema reads it. */
  readonly input: unknown;
  readonly index: HistoryIndex;
  readonly sentBack: ReadonlyMap<string, readonly SentBack[]>;
  /** By node: which time it runs now. */
  readonly rounds: ReadonlyMap<string, number>;
  readonly standings: ReadonlyMap<string, Standing>;
  /** Gates that have sent work back while some of it was still open: nothing of it starts anew before that has ended. */
  readonly clearing: ReadonlySet<string>;
}

/** Finds out how every node stands, each after those before it. */
export function surveyOf(workflow: Workflow, history: Surveyed, input: unknown): Survey {
  const index = history.index ?? indexHistory(history);
  const sentBack = sentBackBy(workflow, index);
  const rounds = new Map(workflow.graph.order.map((name) => [name, roundNow(workflow, sentBack, name)]));
  const standings = new Map<string, Standing>();
  for (const name of workflow.graph.order) {
    const node = known(workflow.nodes, name);
    standings.set(name, standingOf(node, { index, round: known(rounds, name), standings }));
  }
  const stale = [...index.open].filter(({ node, round }) => round < (rounds.get(node) ?? 0));
  const clearing = new Set(stale.flatMap(({ node }) => gatesOf(workflow, node)));
  return { workflow, input, index, sentBack, rounds, standings, clearing };
}

/** The nodes that stand like this, in the order of their declaration. */
export function standingsIn<Is extends Standing["is"]>(
  { workflow, standings }: Survey,
  is: Is,
): readonly { readonly node: Node; readonly standing: Extract<Standing, { is: Is }> }[] {
  return [...workflow.nodes.values()].flatMap((node) => {
    const standing = known(standings, node.name);
    return standing.is === is ? [{ node, standing: standing as Extract<Standing, { is: Is }> }] : [];
  });
}
