import type { Part, Place, Store } from "@holdpoint/store";

/** Where a round stands, and whether its part is looked at again since not all that was found could be mended. */
interface Standing {
  readonly place: Place;
  readonly isRepeated: boolean;
}

const BEGIN: Standing = { place: {}, isRepeated: false };

/** Where the rounds of a process stand, by sweep: another process, or this one started anew, makes its own. */
const standings = new WeakMap<Store, Map<string, Standing>>();

/** What a sweep looks at: a pass goes on with its round, a plan tells of everything. */
export type Look = <Found extends { readonly next: Place }>(look: (part: Part) => Promise<Found>) => Promise<Found>;

export const everything: Look = (look) => look("everything");

/**
 * Makes a pass over the next part of what is stored, for a sweep by its name; after the last one the round begins anew. A
 * part in which something failed is looked at once more, and then left to the next round: one row must not stop it.
 *
 * @throws what the pass throws; its part is then looked at again.
 */
export async function goRound<Swept extends { readonly errors: readonly Error[] }>(
  { store, name }: { readonly store: Store; readonly name: string },
  pass: (look: Look) => Promise<Swept>,
): Promise<Swept> {
  const ofStore = standings.get(store) ?? new Map<string, Standing>();
  standings.set(store, ofStore);
  const standing = ofStore.get(name) ?? BEGIN;
  let next = standing.place;
  const swept = await pass(async (look) => {
    const looked = await look({ after: standing.place });
    next = looked.next;
    return looked;
  });
  const isDone = swept.errors.length === 0 || standing.isRepeated;
  ofStore.set(name, isDone ? { place: next, isRepeated: false } : { place: standing.place, isRepeated: true });
  return swept;
}
