import { findIdleCancelling } from "@holdpoint/store";
import { movingRound } from "../sweep.ts";

/** Runs that are being stopped although nothing of them is open any more: they have stopped. */
export const settleCancelling = movingRound("settle-cancelling", {
  find: async ({ store, limit, look }) => (await look((part) => findIdleCancelling(store, { limit, part }))).found,
  move: ({ run }) => ({ run, events: [{ type: "OwnerGone", reason: "nothing_pending" }], reason: "nothing_pending" }),
});
