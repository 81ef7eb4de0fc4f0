import { known } from "./known.ts";
import type { Node } from "./node.ts";
import type { Graph } from "./workflow.ts";

type Nodes = ReadonlyMap<string, Node>;

/** Where a gate sends work back to; of everything else, nowhere. */
export function reworkOf(node: Node): readonly string[] {
  return node.kind === "gate" ? node.rework : [];
}

/**
 * The nodes so that each comes after those before it, otherwise as declared. What waits for itself, or for something that
 * does, has no place in it.
 */
export function orderOf(nodes: Nodes): readonly string[] {
  const missing = new Map([...nodes].map(([name, { after }]) => [name, after.length]));
  const followers = followersOf(nodes);
  const ready = [...nodes.keys()].filter((name) => missing.get(name) === 0);
  const order: string[] = [];
  for (let name = ready.shift(); name !== undefined; name = ready.shift()) {
    order.push(name);
    for (const follower of known(followers, name)) {
      const left = known(missing, follower) - 1;
      missing.set(follower, left);
      if (left === 0) ready.push(follower);
    }
  }
  return order;
}

/** By node: those that come directly after it. */
export function followersOf(nodes: Nodes): ReadonlyMap<string, readonly string[]> {
  const followers = new Map<string, string[]>([...nodes.keys()].map((name) => [name, []]));
  for (const [name, { after }] of nodes) for (const before of after) known(followers, before).push(name);
  return followers;
}

/** What follows from the edges of nodes that wait for nothing but each other, and never for themselves. */
export function graphOf(nodes: Nodes): Graph {
  const order = orderOf(nodes);
  const upstream = upstreamOf(nodes, order);
  const gates = [...nodes].filter(([, node]) => reworkOf(node).length > 0);
  const loops = new Map(gates.map(([name, node]) => [name, loopOf({ name, rework: reworkOf(node) }, upstream)]));
  const gatesOf = new Map(
    order.map((name) => [name, gates.map(([gate]) => gate).filter((gate) => known(loops, gate).has(name))]),
  );
  return { order, upstream, loops, gatesOf };
}

function upstreamOf(nodes: Nodes, order: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const upstream = new Map<string, Set<string>>();
  for (const name of order) {
    const { after } = known(nodes, name);
    upstream.set(name, new Set(after.flatMap((each) => [each, ...known(upstream, each)])));
  }
  return upstream;
}

/** The gate, what it sends the work back to, and all that lies between them. */
function loopOf(
  { name, rework }: { readonly name: string; readonly rework: readonly string[] },
  upstream: ReadonlyMap<string, ReadonlySet<string>>,
): ReadonlySet<string> {
  const between = [...known(upstream, name)].filter((each) =>
    rework.some((start) => each === start || known(upstream, each).has(start)),
  );
  return new Set([...between, name]);
}
