import { findRetriesDue } from "@holdpoint/store";
import { movingSweep } from "../sweep.ts";

/** Runs that wait to be tried again, and may be now. */
export const retryDue = movingSweep("retry-due", {
  find: ({ store, limit }) => findRetriesDue(store, limit),
  move: ({ run }) => ({ run, events: [{ type: "RetryDue" }] }),
});
