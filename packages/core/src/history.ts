import { type CallRecord, NO_RECORD, recordAfter, type StepOfCall } from "./call-record.ts";
import { NO_TOTALS, type RunTotals, totalsAfter } from "./run-totals.ts";
import type { Call, Step } from "./step.ts";
import { addEnd, endOf, type GrowingWork, noWork, type Work, workOf } from "./work.ts";

// Owns: what is asked of a run's steps and calls, kept as they are appended, so that no question costs more in a long run.
// Does not own: what follows from the answers (`plan` and what it is made of).
// I1. An answer is the same as if all steps were read for it.
// I2. A history never changes: what is appended is in the new one only. Both share one index while nobody looks back; who
//     reads an older one, or appends to it, gives it an index of its own.
// I3. A call is there before, or together with, the first step that names it: so they are committed.

/** What a run has done so far: its steps and its calls, in their order. */
export interface RunHistory {
  /** What is known of exactly these. To be asked at once, and never kept: an append goes on with it. */
  readonly known: Known;
  /** The history with these behind it; this one stays as it is. */
  append(more: Appended): RunHistory;
}

/** What a history is appended with; calls come before the steps. */
export interface Appended {
  readonly steps?: readonly Step[];
  readonly calls?: readonly Call[];
}

/** The answers to what is asked of a history, each at hand. */
export interface Known {
  readonly steps: readonly Step[];
  readonly calls: readonly Call[];
  readonly totals: RunTotals;
  readonly callById: ReadonlyMap<string, Call>;
  readonly callsByTurn: ReadonlyMap<number, readonly Call[]>;
  /** By the name of their work, as the model asked for them. */
  readonly callsByWork: ReadonlyMap<string, readonly Call[]>;
  readonly workByName: ReadonlyMap<string, Work>;
  readonly recordById: ReadonlyMap<string, CallRecord>;
  /** The place, in the last reply's order, of its first call that has no result yet. */
  readonly openPlace: number;
  /** Of each reply since the last retry: its calls whose arguments, as they were asked for, the tools do not take. */
  readonly invalidCalls: readonly (readonly string[])[];
  /** What a graph has started and what has no result yet, in the order of the starts. */
  readonly openIds: ReadonlySet<string>;
}

/** The same while it is being made: it is only ever added to. */
interface Growing extends Known {
  readonly steps: Step[];
  readonly calls: Call[];
  totals: RunTotals;
  readonly callById: Map<string, Call>;
  readonly callsByTurn: Map<number, Call[]>;
  readonly callsByWork: Map<string, Call[]>;
  readonly workByName: Map<string, GrowingWork>;
  readonly recordById: Map<string, CallRecord>;
  openPlace: number;
  invalidCalls: (readonly string[])[];
  readonly openIds: Set<string>;
}

/** The history of a run with these steps and calls. */
export function runHistory(steps: readonly Step[], calls: readonly Call[]): RunHistory {
  return new HistoryOver(indexed(steps, calls));
}

/** What the steps say of one call. */
export function recordOf({ known }: RunHistory, callId: string): CallRecord {
  return known.recordById.get(callId) ?? NO_RECORD;
}

/** The calls of one turn. */
export function callsOfTurn({ known }: RunHistory, turn: number): readonly Call[] {
  return known.callsByTurn.get(turn) ?? [];
}

/** A class since every step makes one: an object that is written with a getter costs as much as all else about an append. */
class HistoryOver implements RunHistory {
  readonly #stepCount: number;
  readonly #callCount: number;
  #index: Growing;

  constructor(index: Growing) {
    this.#stepCount = index.steps.length;
    this.#callCount = index.calls.length;
    this.#index = index;
  }

  get known(): Known {
    return this.#own();
  }

  append({ steps = [], calls = [] }: Appended): RunHistory {
    const grown = this.#own();
    for (const call of calls) addCall(grown, call);
    for (const step of steps) addStep(grown, step);
    return new HistoryOver(grown);
  }

  #own(): Growing {
    const { steps, calls } = this.#index;
    const isNewest = steps.length === this.#stepCount && calls.length === this.#callCount;
    if (!isNewest) this.#index = indexed(steps.slice(0, this.#stepCount), calls.slice(0, this.#callCount));
    return this.#index;
  }
}

function indexed(steps: readonly Step[], calls: readonly Call[]): Growing {
  const index: Growing = {
    steps: [],
    calls: [],
    totals: NO_TOTALS,
    callById: new Map(),
    callsByTurn: new Map(),
    callsByWork: new Map(),
    workByName: new Map(),
    recordById: new Map(),
    openPlace: 0,
    invalidCalls: [],
    openIds: new Set(),
  };
  for (const call of calls) addCall(index, call);
  for (const step of steps) addStep(index, step);
  return index;
}

function addCall(index: Growing, call: Call): void {
  index.calls.push(call);
  index.callById.set(call.id, call);
  addTo(index.callsByTurn, call.turn, call);
  addTo(index.callsByWork, workOf(call), call);
}

function addTo<Key>(lists: Map<Key, Call[]>, key: Key, call: Call): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [call]);
  else list.push(call);
}

function addStep(index: Growing, step: Step): void {
  const { body } = step;
  index.steps.push(step);
  index.totals = totalsAfter(index.totals, step);
  if (isOfCall(step)) {
    const { callId } = step.body;
    index.recordById.set(callId, recordAfter(index.recordById.get(callId) ?? NO_RECORD, step));
    addEndOf(index, step);
  }
  if (body.kind === "model_reply") {
    index.openPlace = 0;
    index.invalidCalls.push(body.callIds.filter((id) => mayBeInvalid(index, id)));
  }
  if (body.kind === "operator" && body.choice === "retry") index.invalidCalls = [];
  if (body.kind === "nodes_started") {
    for (const id of body.callIds) index.openIds.add(id);
  }
  if (body.kind === "tool_result") index.openIds.delete(body.callId);
  if (body.kind === "model_reply" || body.kind === "tool_result") skipDone(index);
}

function isOfCall(step: Step): step is StepOfCall & { readonly body: { readonly callId: string } } {
  return "callId" in step.body && step.body.callId !== null;
}

function addEndOf(index: Growing, step: Step): void {
  const end = endOf(step);
  const call = end === null ? undefined : index.callById.get(end.callId);
  if (end === null || call === undefined) return;
  const name = workOf(call);
  const work = index.workByName.get(name) ?? noWork();
  addEnd(work, end);
  index.workByName.set(name, work);
}

/** Each call of a reply is passed over once. */
function skipDone(index: Growing): void {
  const callIds = index.totals.reply?.body.callIds ?? [];
  for (;;) {
    const id = callIds[index.openPlace];
    if (id === undefined || !hasResult(index, id)) return;
    index.openPlace += 1;
  }
}

function hasResult({ recordById }: Known, callId: string): boolean {
  return (recordById.get(callId) ?? NO_RECORD).result !== null;
}

/** A call that is not there is for whoever asks about it. */
function mayBeInvalid({ callById }: Known, callId: string): boolean {
  const call = callById.get(callId);
  return call === undefined || call.verdict.kind === "invalid";
}
