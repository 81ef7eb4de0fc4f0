/** What each run of a trial does: so many times a model reply that asks for calls and their results, then a closing reply. */
export interface Work {
  readonly turns: number;
  /** Read-only calls that each reply but the last asks for. */
  readonly calls: number;
}

/** Durable steps of one run: a step for each model reply and each result of a call. */
export function stepsOf({ turns, calls }: Work): number {
  return turns * (1 + calls) + 1;
}
