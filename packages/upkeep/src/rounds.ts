import type { Part, Place, Store } from "@holdpoint/store";

/** Where the rounds of a process stand, by sweep: another process, or this one started anew, makes its own. */
const places = new WeakMap<Store, Map<string, Place>>();

/** Looks at the next part of what is stored, for a sweep by its name; after the last one the round begins anew. */
export async function goRound<Found extends { readonly next: Place }>(
  { store, name }: { readonly store: Store; readonly name: string },
  look: (part: Part) => Promise<Found>,
): Promise<Found> {
  const ofStore = places.get(store) ?? new Map<string, Place>();
  const looked = await look({ after: ofStore.get(name) ?? {} });
  places.set(store, ofStore.set(name, looked.next));
  return looked;
}

/** What a sweep looks at: a pass goes on with its round, a plan tells of everything. */
export type Look = <Found extends { readonly next: Place }>(look: (part: Part) => Promise<Found>) => Promise<Found>;

export const everything: Look = (look) => look("everything");
