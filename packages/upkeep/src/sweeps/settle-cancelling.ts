import { findIdleCancelling } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/** Runs that are being stopped although nothing of them is open any more: they have stopped. */
export const settleCancelling = movingSweep("settle-cancelling", {
  find: ({ store, limit }) => findIdleCancelling(store, limit),
  move: ({ run }) => ({ run, events: [{ type: "OwnerGone", reason: "nothing_pending" }], reason: "nothing_pending" }),
});
