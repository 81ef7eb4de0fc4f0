// The views of the schema `holdpoint`, for the reads.

import { callColumns, holdpoint } from "./schema-columns.ts";

/**
 * Every call of a run: those with rows of their own, and those that stand in the steps that asked for them. To find one of
 * the latter all steps of its run are read, so nothing that a worker does at each step reads this. Runs are to be named by
 * their ids: for those that a join finds, the steps of all runs are read.
 */
export const allCalls = holdpoint.view("all_calls", callColumns()).existing();
