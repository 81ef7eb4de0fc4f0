import { findUntoldParents, tellingMove } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/** Ends of children that have not been counted on their parents: whoever ended them has died, or was no worker. */
export const tellParents = movingSweep("tell-parents", {
  find: ({ store, limit }) => findUntoldParents(store, { limit }),
  move: tellingMove,
});
