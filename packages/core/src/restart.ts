import type { Actor } from "./event.ts";
import type { LostReason } from "./lost.ts";
import { reduce } from "./reduce.ts";
import { type OpenCall, type TakeOver, takeOver } from "./settle.ts";
import type { RunState } from "./state.ts";
import type { EffectProperties } from "./step.ts";

/** What a call does outside, and what the other side offers to find out about it or to do it only once. */
export const EFFECT_CLASSES = ["read", "timer", "children", "key", "look_up", "both", "unsafe"] as const;
export type EffectClass = (typeof EFFECT_CLASSES)[number];

/** The class of a call's effect, for whoever decides about a process that is making it. */
export function effectClass(effect: EffectProperties): EffectClass {
  if (effect.kind !== "effect") return effect.kind;
  if (effect.keyValidForMs !== null && effect.lookUpSettlesWithinMs !== null) return "both";
  if (effect.lookUpSettlesWithinMs !== null) return "look_up";
  return effect.keyValidForMs === null ? "unsafe" : "key";
}

/** What becomes of a run whose owner is gone, and how each call that it was making is settled. */
export interface Foreseen {
  readonly becomes: RunState;
  readonly calls: readonly { readonly attemptId: string; readonly way: TakeOver; readonly text: string }[];
}

/**
 * What would become of a run if its owner were gone at this moment. It is the same reduction that moves the run then, and
 * nothing else: so what is foretold is what happens, as long as the row stays as it was read.
 */
export function foreseeLoss(
  state: RunState,
  open: readonly OpenCall[],
  { reason, actor }: { readonly reason: LostReason; readonly actor: Actor },
): Foreseen {
  const gone = reduce(state, { type: "OwnerGone", reason }, actor);
  const lost = "next" in gone ? gone.next : state;
  const recovered = reduce(lost, { type: "Recovered" }, actor);
  const calls = open.map((each) => ({ attemptId: each.attempt.id, ...foreseeCall(each) }));
  return { becomes: "next" in recovered ? recovered.next : lost, calls };
}

function foreseeCall(open: OpenCall): { readonly way: TakeOver; readonly text: string } {
  const way = takeOver(open);
  return { way, text: way.do === "ask_a_person" ? `${NOBODY_KNOWS[way.reason]}: an operator is asked` : WAYS[way.do] };
}

const WAYS = {
  look_up: "the next worker asks the other side whether it happened, and goes on only with its answer",
  repeat: "the next worker sends it again under the same key, and the other side acts once",
} as const;

const NOBODY_KNOWS: Readonly<Record<Extract<TakeOver, { do: "ask_a_person" }>["reason"], string>> = {
  unsafe: "the other side offers neither a look-up nor a key",
  key_expired: "the other side may not know its key any more",
  repeat_refused: "the other side has turned a repeat down",
  may_not_start: "it may not be sent again now (a stop, a pause, or its approval is over)",
};

/** What happens to a run that has lost its owner, in words. `step` is what it was doing, where that is known. */
export function describeLoss({ becomes, calls }: Foreseen, step: string | null): string {
  switch (becomes.status) {
    case "queued":
      return `another worker goes on from the last stored step${step === null ? "" : `; ${step} is begun anew`}`;
    case "outcome_unknown":
      return `nothing is begun before it is known what became of the call under way: ${waysOf(calls)}`;
    case "waiting_operator":
      return `an operator is asked (${(becomes.waitingFor?.reason ?? "unknown").replaceAll("_", " ")})`;
    case "cancelling":
      return `it goes on being stopped; what is open is found out first: ${waysOf(calls)}`;
    case "cancelled":
      return "it has stopped, as it was asked to";
    case "paused":
      return "it is paused, as it was asked to be";
    default:
      return "it stays as it is";
  }
}

function waysOf(calls: Foreseen["calls"]): string {
  const [first] = calls;
  return first === undefined ? "its child runs are waited for" : [...new Set(calls.map(({ text }) => text))].join("; ");
}
