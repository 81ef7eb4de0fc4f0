import { followersOf, graphOf, orderOf, reworkOf } from "./graph.ts";
import { known } from "./known.ts";
import { LIMITS } from "./limits.ts";
import type { Node } from "./node.ts";

type Nodes = ReadonlyMap<string, Node>;

/** What is wrong with how nodes hang together; nothing: every one of them can be reached, and every loop ends. */
export function checkGraph(nodes: Nodes): readonly string[] {
  if (nodes.size === 0) return ["it has no nodes, so it has no end: give it at least one"];
  if (nodes.size > LIMITS.nodes) {
    return [`it has ${nodes.size} nodes, and may have ${LIMITS.nodes}: move a part into a workflow of its own`];
  }
  const strangers = [...nodes.values()].flatMap((node) => checkNames(node, nodes));
  if (strangers.length > 0) return strangers;
  const cycles = checkCycles(nodes);
  if (cycles.length > 0) return cycles;
  return [...nodes.values()].flatMap(checkJoin).concat(checkLoops(nodes));
}

function checkNames(node: Node, nodes: Nodes): readonly string[] {
  const { name, after } = node;
  const unknown = (key: string, names: readonly string[]) =>
    names
      .filter((each) => !nodes.has(each))
      .map((each) => `node "${name}": "${key}" names "${each}", and there is no such node`);
  const twice = after.filter((each, index) => after.indexOf(each) !== index);
  return [
    ...unknown("after", after),
    ...unknown("rework", reworkOf(node)),
    ...twice.map((each) => `node "${name}": "after" names "${each}" twice`),
  ];
}

function checkCycles(nodes: Nodes): readonly string[] {
  const ordered = new Set(orderOf(nodes));
  const left = [...nodes.keys()].filter((name) => !ordered.has(name));
  if (left.length === 0) return [];
  const cycle = cycleIn(nodes, left);
  const behind = left.filter((name) => !cycle.includes(name));
  const way = [...cycle, cycle[0]].join(" → ");
  return [
    `the nodes ${way} wait for each other: only a gate may send work back, by "rework"`,
    ...behind.map((name) => `node "${name}" is never reached: it waits for nodes that wait for each other`),
  ];
}

/** One cycle among nodes each of which waits for another of them, in the order of the work. */
function cycleIn(nodes: Nodes, left: readonly string[]): readonly string[] {
  const blocked = new Map(
    left.map((name) => [name, known(nodes, name).after.filter((before) => left.includes(before))]),
  );
  const path: string[] = [];
  let next = left.slice(0, 1);
  while (next.every((name) => !path.includes(name))) {
    path.push(...next);
    next = next.flatMap((name) => known(blocked, name).slice(0, 1));
  }
  return path.slice(path.findIndex((name) => next.includes(name))).reverse();
}

function checkJoin({ name, kind, after, join }: Node): readonly string[] {
  if (kind === "gate" && after.length === 0) return [`node "${name}": a gate needs something to judge, in "after"`];
  if (join === "all") return [];
  if (join === "any") return after.length > 0 ? [] : [`node "${name}": join "any" needs nodes in "after"`];
  const { atLeast } = join;
  if (Number.isSafeInteger(atLeast) && atLeast >= 1 && atLeast <= after.length) return [];
  return [`node "${name}": join atLeast ${atLeast} can never be met: it comes after ${after.length} nodes`];
}

function checkLoops(nodes: Nodes): readonly string[] {
  const { upstream, loops } = graphOf(nodes);
  const followers = followersOf(nodes);
  const nowhere = [...nodes.values()].flatMap((node) =>
    reworkOf(node)
      .filter((start) => !known(upstream, node.name).has(start))
      .map((start) => `node "${node.name}": "rework" names "${start}", which does not come before it`),
  );
  const leaks = [...loops].flatMap(([gate, loop]) =>
    [...loop]
      .filter((name) => name !== gate)
      .flatMap((name) =>
        known(followers, name)
          .filter((follower) => !loop.has(follower))
          .map((to) => ({ name, to })),
      )
      .map(
        ({ name, to }) =>
          `node "${to}" comes after "${name}", which gate "${gate}" may send back: let it come after the gate`,
      ),
  );
  return nowhere.length > 0 ? nowhere : leaks;
}
