import type { JsonValue } from "@holdpoint/core";
import type { Choice, Execution, History } from "./history.ts";

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
}

/** A history, by node and round; made in one pass. */
export interface HistoryIndex {
  readonly rounds: ReadonlyMap<string, ReadonlyMap<number, Round>>;
  readonly open: readonly Execution[];
  /** What was chosen about the workflow's result. */
  readonly resultChoice: Choice["choice"] | null;
}

const EMPTY: Slot = { execution: null, at: -1, choice: null };
const NOTHING: Round = { own: EMPTY, list: [], items: new Map() };

/** A round while the history is being read. */
type MutableRound = Round & { readonly items: Map<number, Slot> };

/** Orders a history by what is asked of it, visiting each execution once. */
export function indexHistory({ executions, choices }: Pick<History, "executions" | "choices">): HistoryIndex {
  const byCall = new Map<string, Choice["choice"]>();
  const rounds = new Map<string, Map<number, MutableRound>>();
  let resultChoice: Choice["choice"] | null = null;
  const put = (node: string, { round, item, slot }: { round: number; item: number | null; slot: Slot }): void => {
    const ofNode = rounds.get(node) ?? new Map<number, MutableRound>();
    const there = ofNode.get(round) ?? { own: EMPTY, list: [], items: new Map<number, Slot>() };
    if (item === null) Object.assign(there, { own: slot, list: listIn(slot) });
    else there.items.set(item, slot);
    rounds.set(node, ofNode.set(round, there));
  };
  for (const { choice, node, round, item, callId } of choices) {
    if (callId !== null) byCall.set(callId, choice);
    else if (node === null) resultChoice = choice;
    else put(node, { round, item, slot: { ...EMPTY, choice } });
  }
  const open: Execution[] = [];
  executions.forEach((execution, at) => {
    const { node, round, item, callId, state } = execution;
    if (state === "open") open.push(execution);
    put(node, { round, item, slot: { execution, at, choice: byCall.get(callId) ?? null } });
  });
  return { rounds, open, resultChoice };
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
