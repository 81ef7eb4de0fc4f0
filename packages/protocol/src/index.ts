export { ApprovalId, AttemptId, CallId, Instant, RunId, SessionId, WorkerId } from "./ids.ts";
export { MAX_LIMIT } from "./page.ts";
export type { ProblemCode } from "./problem.ts";
export { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, Problem } from "./problem.ts";
export { Agent, Approval, ApprovalState, Decided, Health, Message, Readiness, Session, Worker } from "./resources.ts";
export type { Access, Parsed, Reply, Route, RouteName, Routes } from "./routes.ts";
export { ACCESS, IdempotencyKey, ROUTES } from "./routes.ts";
export type { RefusalRule } from "./run.ts";
export { ACTIONS, AgentRef, Call, RULES, Run, Status, TimelineEntry } from "./run.ts";
