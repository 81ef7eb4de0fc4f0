import { findWedged } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/** Runs whose owner lives but has shown no progress in time: renewal is not progress. */
export const recoverWedged = movingSweep("recover-wedged", {
  find: ({ store, limit }) => findWedged(store, limit),
  move: ({ run }) => ({
    run,
    events: [{ type: "OwnerGone", reason: "wedged" }, { type: "Recovered" }],
    reason: "wedged",
  }),
});
