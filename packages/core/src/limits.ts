import type { RunHistory } from "./history.ts";
import type { Limits, Price } from "./step.ts";

/** A run's limit that its use has reached. Turns are counted by the model's replies, in `plan`. */
export type BrokenLimit = "limit_tokens" | "limit_cost" | "limit_wall_time";

/** What a run's limits are judged by. */
export interface Used {
  readonly history: RunHistory;
  readonly limits: Limits;
  readonly price: Price | null;
  readonly workedMs: number;
}

/**
 * The limit that keeps a run from starting anything more; null if none does. Each retry that an operator orders grants
 * all of them once more.
 */
export function brokenLimit({ history, limits, price, workedMs }: Used): BrokenLimit | null {
  const { retriesOrdered, inputTokens, outputTokens } = history.known.totals;
  const times = 1 + retriesOrdered;
  // First: of these limits it alone is judged before a call as well, and must not hide behind another one.
  if (limits.wallMs !== null && workedMs >= limits.wallMs * times) return "limit_wall_time";
  if (inputTokens + outputTokens >= limits.tokens * times) return "limit_tokens";
  if (limits.costUsd !== null && price !== null) {
    const costUsd = (inputTokens * price.inputUsd + outputTokens * price.outputUsd) / 1_000_000;
    if (costUsd >= limits.costUsd * times) return "limit_cost";
  }
  return null;
}
