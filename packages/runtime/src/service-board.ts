import type { TroubledService } from "@holdpoint/store";

/**
 * What a process has learned of services in trouble since its runs were loaded: a run that is under way must not call one
 * that another run has just been turned away by. Instants are on the database's clock, in milliseconds since the epoch.
 */
export interface ServiceBoard {
  /** The services in trouble: as they were loaded, or as this process knows since. */
  seen(loaded: readonly TroubledService[], loadedAtMs: number): readonly TroubledService[];
  /** Notes trouble, or that there is none any more. */
  note(name: string, trouble: TroubledService | null, atMs: number): void;
}

export function openServiceBoard(): ServiceBoard {
  // One entry for each service that was ever in trouble.
  const entries = new Map<string, { readonly trouble: TroubledService | null; readonly atMs: number }>();
  return {
    seen: (loaded, loadedAtMs) => {
      // Asked before every step, and nearly always there is nothing.
      if (entries.size === 0) return loaded;
      const since = [...entries].filter(([, { atMs }]) => atMs >= loadedAtMs);
      const names = new Set(since.map(([name]) => name));
      const learned = since.flatMap(([, { trouble }]) => (trouble === null ? [] : [trouble]));
      return [...loaded.filter(({ name }) => !names.has(name)), ...learned];
    },
    note: (name, trouble, atMs) => {
      const known = entries.get(name);
      if (known === undefined || known.atMs <= atMs) entries.set(name, { trouble, atMs });
    },
  };
}
