import type { Limits, Price, Step } from "./step.ts";

/** A run's limit that its use has reached. Turns are counted by the model's replies, in `plan`. */
export type BrokenLimit = "limit_tokens" | "limit_cost" | "limit_wall_time";

/** What a run's limits are judged by. */
export interface Used {
  readonly steps: readonly Step[];
  readonly limits: Limits;
  readonly price: Price | null;
  readonly workedMs: number;
}

/**
 * The limit that keeps a run from starting anything more; null if none does. Each retry that an operator orders grants
 * all of them once more.
 */
export function brokenLimit({ steps, limits, price, workedMs }: Used): BrokenLimit | null {
  const times = 1 + retriesOrdered(steps);
  // First: of these limits it alone is judged before a call as well, and must not hide behind another one.
  if (limits.wallMs !== null && workedMs >= limits.wallMs * times) return "limit_wall_time";
  const { inputTokens, outputTokens } = tokensUsed(steps);
  if (inputTokens + outputTokens >= limits.tokens * times) return "limit_tokens";
  if (limits.costUsd !== null && price !== null) {
    const costUsd = (inputTokens * price.inputUsd + outputTokens * price.outputUsd) / 1_000_000;
    if (costUsd >= limits.costUsd * times) return "limit_cost";
  }
  return null;
}

/** How often an operator has ordered a retry: each grants the run's limits once more. */
export function retriesOrdered(steps: readonly Step[]): number {
  return steps.filter(isRetry).length;
}

/** Whether a step is an operator's order to try again. */
export function isRetry({ body }: Step): boolean {
  return body.kind === "operator" && body.choice === "retry";
}

function tokensUsed(steps: readonly Step[]): { readonly inputTokens: number; readonly outputTokens: number } {
  let [inputTokens, outputTokens] = [0, 0];
  for (const { body } of steps) {
    if (body.kind !== "model_reply") continue;
    inputTokens += body.usage.inputTokens;
    outputTokens += body.usage.outputTokens;
  }
  return { inputTokens, outputTokens };
}
