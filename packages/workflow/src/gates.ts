import type { HistoryIndex, Slot } from "./index-history.ts";
import { roundOf, roundsOf } from "./index-history.ts";
import { known } from "./known.ts";
import type { GateNode } from "./node.ts";
import { isLeftToOperator, readVerdict } from "./read-output.ts";
import type { Feedback } from "./scope-values.ts";
import type { Workflow } from "./workflow.ts";

/** A no that sent work back. */
export interface SentBack extends Feedback {
  /** The place in the history of the execution that said no. */
  readonly at: number;
}

/**
 * What all gates have sent back, from their executions alone. A gate's count of noes begins anew where a gate around it
 * sends the whole back; whether it has can be seen from its round, which is one more than all that was sent back over it.
 */
export function sentBackBy({ nodes }: Workflow, index: HistoryIndex): ReadonlyMap<string, readonly SentBack[]> {
  const gates = [...nodes.values()].filter((node): node is GateNode => node.kind === "gate" && node.rework.length > 0);
  return new Map(gates.map((gate) => [gate.name, sentBackByOne(gate, index)]));
}

function sentBackByOne(gate: GateNode, index: HistoryIndex): readonly SentBack[] {
  const sentBack: SentBack[] = [];
  let [around, noes] = [0, 0];
  for (const round of roundsOf(index, gate.name)) {
    const slot = roundOf(index, gate.name, round).own;
    const text = refusalOf(gate, slot);
    if (text === null) continue;
    const sentBackAround = round - 1 - sentBack.length;
    noes = sentBackAround === around ? noes + 1 : 1;
    around = sentBackAround;
    if (noes < gate.rounds || slot.choice === "retry") sentBack.push({ gate: gate.name, round, text, at: slot.at });
  }
  return sentBack;
}

/** Why a gate says no; null where it does not, cannot be read, or a person decides. */
function refusalOf(gate: GateNode, { execution, choice }: Slot): string | null {
  if (execution?.state !== "done" || choice === "skip" || isLeftToOperator(gate, execution.output)) return null;
  const verdict = readVerdict(gate, execution.output);
  return verdict.ok && !verdict.value.pass ? verdict.value.feedback : null;
}

/** Which time a node runs now: one more than it was sent back. */
export function roundNow(workflow: Workflow, sentBack: ReadonlyMap<string, readonly SentBack[]>, node: string): number {
  return 1 + gatesOf(workflow, node).reduce((sum, gate) => sum + known(sentBack, gate).length, 0);
}

/** Why a node was sent back last; null if it was not. */
export function lastFeedback(
  workflow: Workflow,
  sentBack: ReadonlyMap<string, readonly SentBack[]>,
  node: string,
): Feedback | null {
  const last = gatesOf(workflow, node)
    .flatMap((gate) => known(sentBack, gate).slice(-1))
    .reduce<SentBack | null>((latest, each) => (latest === null || each.at > latest.at ? each : latest), null);
  return last === null ? null : { gate: last.gate, round: last.round, text: last.text };
}

/** The gates that may send a node back. */
export function gatesOf({ graph }: Workflow, node: string): readonly string[] {
  return known(graph.gatesOf, node);
}
