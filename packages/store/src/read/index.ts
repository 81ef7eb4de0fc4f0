// The store's reads. They come with a query builder, whose import is slow: what works on runs takes only the verbs.
export type { ApprovalFilter, ApprovalView } from "./approvals.ts";
export { findApproval, listApprovals } from "./approvals.ts";
export type { AttemptView, CallView } from "./calls.ts";
export { listCalls } from "./calls.ts";
export type { StoreCheck } from "./check-store.ts";
export { checkStore } from "./check-store.ts";
export type { MessageView } from "./messages.ts";
export { listMessages } from "./messages.ts";
export { readId } from "./read-id.ts";
export type { Page, PageRequest } from "./reader.ts";
export { MAX_PAGE } from "./reader.ts";
export type { Approvers, MovedBy, RunFilter, RunView } from "./runs.ts";
export { findRun, listRuns } from "./runs.ts";
export type { TimelineEntry, TimelineRequest } from "./timeline.ts";
export { findTimeline } from "./timeline.ts";
export type { WorkerView } from "./workers.ts";
export { listWorkers } from "./workers.ts";
