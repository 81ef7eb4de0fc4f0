import { itemOf, type Round } from "./index-history.ts";
import type { MapOver, Node } from "./node.ts";
import { type Standing, standingAt } from "./standing.ts";

type MapNode = Node & { readonly map: MapOver };

/** How the items of one round of a map stand, as far as its changes have been read. */
interface Seen {
  readonly node: Node;
  read: number;
  /** Of those that have left a trace. */
  readonly standings: Map<number, Standing>;
  readonly ready: Set<number>;
  /** Those that a person has to decide about, or that end the workflow. */
  readonly stopped: Map<number, Standing>;
  open: number;
  partial: number;
  /** Each item before it has left a trace. */
  firstFresh: number;
}

/** By round, for the node that it was read for last: of a map that has many items, only what has changed is read again. */
const SEEN = new WeakMap<Round, Seen>();

/** How a map stands whose list is there, by its items: the first that stops it counts, in the order of the list. */
export function standingOfItems(node: MapNode, round: Round): Standing {
  const seen = readOn(node, round);
  const [stop] = [...seen.stopped].toSorted(([a], [b]) => a - b);
  if (stop !== undefined) return stop[1];
  const fresh = round.list.length - seen.standings.size;
  if (seen.open + seen.ready.size + fresh === 0) return { is: "complete", how: "done", isPartial: seen.partial > 0 };
  const toStart = nextItems(seen, round, Math.max(0, node.map.atMost - seen.open));
  return { is: "partway", hasBegun: seen.standings.size > 0, toStart };
}

function readOn(node: MapNode, round: Round): Seen {
  const before = SEEN.get(round);
  const seen = before?.node === node ? before : nothingSeen(node);
  SEEN.set(round, seen);
  for (const item of round.changes.slice(seen.read)) {
    if (item < round.list.length) note(seen, item, standingAt(node, itemOf(round, item)));
  }
  seen.read = round.changes.length;
  while (seen.standings.has(seen.firstFresh)) seen.firstFresh += 1;
  return seen;
}

function nothingSeen(node: Node): Seen {
  const [standings, stopped] = [new Map<number, Standing>(), new Map<number, Standing>()];
  return { node, read: 0, standings, ready: new Set(), stopped, open: 0, partial: 0, firstFresh: 0 };
}

function note(seen: Seen, item: number, standing: Standing | null): void {
  const before = seen.standings.get(item) ?? null;
  seen.open += countOpen(standing) - countOpen(before);
  seen.partial += countPartial(standing) - countPartial(before);
  seen.standings.delete(item);
  seen.ready.delete(item);
  seen.stopped.delete(item);
  if (standing === null) {
    seen.firstFresh = Math.min(seen.firstFresh, item);
    return;
  }
  seen.standings.set(item, standing);
  if (standing.is === "ready") seen.ready.add(item);
  if (standing.is === "held" || standing.is === "blocking") seen.stopped.set(item, standing);
}

function countOpen(standing: Standing | null): number {
  return standing?.is === "open" ? 1 : 0;
}

function countPartial(standing: Standing | null): number {
  return standing?.is === "complete" && (standing.isPartial || standing.how === "skipped") ? 1 : 0;
}

/** The next items to start, in the order of the list: those that an operator wants tried anew, and those never started. */
function nextItems({ ready, standings, firstFresh }: Seen, { list }: Round, room: number): readonly number[] {
  const items = [...ready];
  for (let item = firstFresh; item < list.length && items.length < ready.size + room; item += 1) {
    if (!standings.has(item)) items.push(item);
  }
  return items.toSorted((a, b) => a - b).slice(0, room);
}
