/** A wait that a rule asked for. */
export interface Delay {
  readonly ruleId: string;
  readonly ms: number;
}

/** Requests and replies that are held up for a given time. */
export interface Delays {
  /**
   * Waits; `null` waits for nothing. Gives `false` when the sandbox was closed meanwhile: then nothing more may happen.
   *
   * @param key  In use while this waits: its effect has happened, its reply has not gone out.
   */
  readonly wait: (delay: Delay | null, key?: string | null) => Promise<boolean>;
  readonly keyInFlight: (key: string) => boolean;
  /** Ends the waits of one rule, or all with `null`, before their time. */
  readonly end: (ruleId: string | null) => void;
  readonly close: () => void;
}

export function createDelays(): Delays {
  const waiting = new Map<(open: boolean) => void, { readonly ruleId: string; readonly key: string | null }>();
  return {
    wait: (delay, key = null) => {
      if (delay === null) return Promise.resolve(true);
      return new Promise((resolve) => {
        const end = (open: boolean): void => {
          clearTimeout(timer);
          waiting.delete(end);
          resolve(open);
        };
        const timer = setTimeout(end, delay.ms, true);
        waiting.set(end, { ruleId: delay.ruleId, key });
      });
    },
    keyInFlight: (key) => [...waiting.values()].some((waiter) => waiter.key === key),
    end: (ruleId) => {
      for (const [end, waiter] of [...waiting]) if (ruleId === null || waiter.ruleId === ruleId) end(true);
    },
    close: () => {
      for (const end of [...waiting.keys()]) end(false);
    },
  };
}
