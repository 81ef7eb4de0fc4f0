import type { JsonValue } from "@holdpoint/core";
import type { Choice, Execution, History, Position } from "./history.ts";

/** What is known of one position: its last execution, and what an operator chose about it. */
export interface Slot {
  readonly execution: Execution | null;
  /** The execution's place in the history; -1 without one. */
  readonly at: number;
  readonly choice: Choice["choice"] | null;
}

/** One round of a node: its own position, and those of a map's items. */
export interface Round {
  readonly own: Slot;
  /** The list that a map was started with; empty where there is none. */
  readonly list: readonly JsonValue[];
  readonly items: ReadonlyMap<number, Slot>;
  /** Items of which something has become known, as often as something has, in that order: who has read some reads on. */
  readonly changes: readonly number[];
}

/** A history, by node and round. */
export interface HistoryIndex {
  readonly rounds: ReadonlyMap<string, ReadonlyMap<number, Round>>;
  /** In the order of their start. */
  readonly open: ReadonlySet<Execution>;
  /** What was chosen about the workflow's result. */
  readonly resultChoice: Choice["choice"] | null;
}

/** A history that has its index already. */
export interface Indexed {
  readonly index: HistoryIndex;
}

/** An index while it is being made. A round is replaced where its list changes; of its items the changes are noted. */
export interface GrowingIndex extends HistoryIndex {
  readonly rounds: Map<string, Map<number, GrowingRound>>;
  readonly open: Set<Execution>;
  resultChoice: Choice["choice"] | null;
  /** What was chosen about executions, by their calls. */
  readonly chosen: Map<string, Choice["choice"]>;
  /** Where the executions are, by their calls. */
  readonly places: Map<string, Position>;
}

interface GrowingRound extends Round {
  readonly items: Map<number, Slot>;
  readonly changes: number[];
}

const EMPTY: Slot = { execution: null, at: -1, choice: null };
const NOTHING: Round = { own: EMPTY, list: [], items: new Map(), changes: [] };

/** Orders a history by what is asked of it, visiting each execution once. */
export function indexHistory({ executions, choices }: Pick<History, "executions" | "choices">): GrowingIndex {
  const index: GrowingIndex = {
    rounds: new Map(),
    open: new Set(),
    resultChoice: null,
    chosen: new Map(),
    places: new Map(),
  };
  for (const choice of choices) addChoice(index, choice);
  for (const [at, execution] of executions.entries()) addExecution(index, execution, at);
  return index;
}

/** Takes in an execution that was started, which stands at `at` of the history. */
export function addExecution(index: GrowingIndex, execution: Execution, at: number): void {
  const { node, round, item, callId, state } = execution;
  if (state === "open") index.open.add(execution);
  index.places.set(callId, { node, round, item });
  put(index, execution, { execution, at, choice: index.chosen.get(callId) ?? null });
}

/** Takes in what has become of an execution; where there is a newer one at its position, that stays. */
export function replaceExecution(index: GrowingIndex, before: Execution, after: Execution): void {
  index.open.delete(before);
  const slot = slotAt(index, after);
  if (slot.execution === before) put(index, after, { ...slot, execution: after });
}

/** Takes in what an operator has chosen. A word about a position holds until something is started there. */
export function addChoice(index: GrowingIndex, { choice, node, round, item, callId }: Choice): void {
  if (callId !== null) {
    index.chosen.set(callId, choice);
    const place = index.places.get(callId);
    const slot = place === undefined ? EMPTY : slotAt(index, place);
    if (place !== undefined && slot.execution?.callId === callId) put(index, place, { ...slot, choice });
  } else if (node === null) index.resultChoice = choice;
  else if (slotAt(index, { node, round, item }).execution === null) {
    put(index, { node, round, item }, { ...EMPTY, choice });
  }
}

function slotAt(index: HistoryIndex, { node, round, item }: Position): Slot {
  const there = roundOf(index, node, round);
  return item === null ? there.own : itemOf(there, item);
}

function put({ rounds }: GrowingIndex, { node, round, item }: Position, slot: Slot): void {
  const ofNode = rounds.get(node) ?? new Map<number, GrowingRound>();
  rounds.set(node, ofNode);
  const there: GrowingRound = ofNode.get(round) ?? { own: EMPTY, list: [], items: new Map(), changes: [] };
  if (item === null) {
    ofNode.set(round, { own: slot, list: listIn(slot), items: there.items, changes: [...there.items.keys()] });
    return;
  }
  there.items.set(item, slot);
  there.changes.push(item);
  ofNode.set(round, there);
}

/** One round of a node; without a trace of it, empty. */
export function roundOf(index: HistoryIndex, node: string, round: number): Round {
  return index.rounds.get(node)?.get(round) ?? NOTHING;
}

function listIn({ execution }: Slot): readonly JsonValue[] {
  const list = execution?.output;
  return Array.isArray(list) ? list : [];
}

/** The position of an item; without a trace of it, empty. */
export function itemOf({ items }: Round, item: number): Slot {
  return items.get(item) ?? EMPTY;
}

/** The rounds of a node that have left a trace, the first one first. */
export function roundsOf(index: HistoryIndex, node: string): readonly number[] {
  return [...(index.rounds.get(node)?.keys() ?? [])].sort((a, b) => a - b);
}
