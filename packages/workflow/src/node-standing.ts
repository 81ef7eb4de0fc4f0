import { type HistoryIndex, roundOf } from "./index-history.ts";
import { standingOfItems } from "./items-standing.ts";
import { known } from "./known.ts";
import type { Node } from "./node.ts";
import { isMap, type Standing, standingAt } from "./standing.ts";

interface Known {
  readonly index: HistoryIndex;
  readonly round: number;
  /** Those of the nodes before it. */
  readonly standings: ReadonlyMap<string, Standing>;
}

/** How one node stands, from its executions; without any, from those before it. */
export function standingOf(node: Node, { index, round, standings }: Known): Standing {
  const there = roundOf(index, node.name, round);
  const own = standingAt(node, there.own);
  if (own === null) return beforeStart(node, standings);
  return isMap(node) && own.is === "complete" && own.how === "done" ? standingOfItems(node, there) : own;
}

function beforeStart({ after, join }: Node, standings: ReadonlyMap<string, Standing>): Standing {
  const before = after.map((name) => known(standings, name));
  const isComplete = before.every((each) => each.is === "complete");
  if (join === "all") return isComplete ? { is: "ready", again: false } : { is: "waiting" };
  const counted = before.filter((each) => each.is === "complete" && each.how !== "passed_over").length;
  if (counted >= (join === "any" ? 1 : join.atLeast)) return { is: "ready", again: false };
  return isComplete ? { is: "unneeded" } : { is: "waiting" };
}
