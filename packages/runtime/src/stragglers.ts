/** Work that is waited for no longer, but may still bring something home: nothing that it does goes unseen. */
export interface Stragglers {
  /** @param work must not reject. */
  add(work: Promise<void>): void;
  /** Resolves when all have ended, and those that came while they did. */
  idle(): Promise<void>;
}

export function openStragglers(): Stragglers {
  const under = new Set<Promise<void>>();
  return {
    add: (work) => {
      const kept = work.finally(() => under.delete(kept));
      under.add(kept);
    },
    idle: async () => {
      while (under.size > 0) await Promise.all(under);
    },
  };
}
