import type { Call, EffectProperties, OpenAttempt } from "./step.ts";

/** What a tool's look-up says of an operation. */
export type LookUpAnswer = "happened" | "did_not_happen" | "still_pending" | "unknown";

/** How an attempt whose worker died can be settled, by what the tool offers. */
export type TakeOver =
  | { readonly do: "look_up" }
  /** The same operation id again: the other side answers it from its record, or acts for the first time. */
  | { readonly do: "repeat" }
  | { readonly do: "ask_a_person"; readonly reason: "unsafe" | "key_expired" | "repeat_refused" | "may_not_start" };

/** An open attempt and what its run allows at this moment. */
export interface OpenCall {
  readonly call: Call;
  readonly attempt: OpenAttempt;
  /** The database's clock now, not at the load. */
  readonly nowMs: number;
  /**
   * Whether the run may start something: a repeat may act for the first time, so it needs all that a start needs (no
   * stop or pause request, an approval that is still valid).
   */
  readonly mayStart: boolean;
}

/** What a look-up's answer means for the attempt. */
export type Settlement =
  | { readonly do: "settle"; readonly finding: "happened" | "did_not_happen" }
  | { readonly do: "repeat" }
  | { readonly do: "look_again"; readonly inMs: number };

/** Decides how an open attempt of another claim is settled. With a look-up it is asked first, whatever else there is. */
export function takeOver(open: OpenCall): TakeOver {
  const { call, attempt } = open;
  if (call.effect.kind !== "effect") throw new RangeError(`Call ${call.id} is no effect: it has no open attempts`);
  if (call.effect.lookUpSettlesWithinMs !== null) return { do: "look_up" };
  if (call.effect.keyValidForMs === null) return { do: "ask_a_person", reason: "unsafe" };
  if (attempt.repeatRefused) return { do: "ask_a_person", reason: "repeat_refused" };
  if (!open.mayStart) return { do: "ask_a_person", reason: "may_not_start" };
  return keyLasts(call.effect, open) ? { do: "repeat" } : { do: "ask_a_person", reason: "key_expired" };
}

/**
 * Judges a look-up's answer. "It did not happen" counts only when the bytes of a dead process can no longer arrive:
 * after the call's deadline and the tool's settle time; before that the operation is still pending. Within its
 * validity a key makes the wait unnecessary: the call is repeated under it.
 *
 * @param lookUps how many look-ups of this attempt came before this one; spaces the next.
 */
export function judgeLookUp(
  answer: LookUpAnswer,
  { lookUps, ...open }: OpenCall & { readonly lookUps: number },
): Settlement {
  const { call, attempt, nowMs } = open;
  if (answer === "happened") return { do: "settle", finding: "happened" };
  if (call.effect.kind !== "effect") throw new RangeError(`Call ${call.id} is no effect: it has no open attempts`);
  if (answer === "did_not_happen") {
    if (open.mayStart && !attempt.repeatRefused && keyLasts(call.effect, open)) return { do: "repeat" };
    const countsFromMs = attempt.deadlineAtMs + (call.effect.lookUpSettlesWithinMs ?? 0);
    if (nowMs > countsFromMs) return { do: "settle", finding: "did_not_happen" };
    return { do: "look_again", inMs: countsFromMs - nowMs + 1 };
  }
  return { do: "look_again", inMs: backoffMs(lookUps, LOOK_UP_BACKOFF) };
}

/** Whether the other side will still know the key when a repeat that is sent now arrives at the latest. */
function keyLasts(
  { keyValidForMs }: Extract<EffectProperties, { kind: "effect" }>,
  { call, attempt, nowMs }: OpenCall,
): boolean {
  return keyValidForMs !== null && nowMs + call.timeoutMs - attempt.keyFirstUsedAtMs < keyValidForMs;
}

export interface Backoff {
  readonly firstMs: number;
  readonly capMs: number;
}

/** How look-ups, and repeats that failed for the moment, are spaced. */
export const LOOK_UP_BACKOFF: Backoff = { firstMs: 2_000, capMs: 300_000 };

/**
 * Delay before the next try, in milliseconds: doubles from `firstMs` and never exceeds `capMs`.
 *
 * @param tries how many came before, 0 for the first delay.
 */
export function backoffMs(tries: number, { firstMs, capMs }: Backoff): number {
  return Math.min(capMs, firstMs * 2 ** Math.min(tries, 30));
}

const POLL_CAP_MS = 6 * 3_600_000;

/**
 * How long to wait before the other side is asked again how an effect that it accepted has settled, in milliseconds: the
 * longer it takes, the rarer, from `everyMs` to six hours.
 *
 * @param waitedMs how long ago it was accepted.
 */
export function pollDelayMs(waitedMs: number, everyMs: number): number {
  return Math.max(everyMs, Math.min(POLL_CAP_MS, Math.floor(waitedMs / 4)));
}
