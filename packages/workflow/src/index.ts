export { checkMigration, type Migration } from "./check-migration.ts";
export { decide } from "./decide.ts";
export type {
  Decision,
  HoldReason,
  NodeStart,
  PersonRequest,
  SettledStart,
  WorkflowHold,
  WorkStart,
} from "./decision.ts";
export { HOLD_CHOICES, isSettled } from "./decision.ts";
export { defineWorkflow, type WorkflowDefinition } from "./define-workflow.ts";
export type { PersonOutput, Scope } from "./definition.ts";
export { type GrowingHistory, growHistory } from "./growing-history.ts";
export type { Choice, Execution, ExecutionState, History, Position } from "./history.ts";
export type { Indexed } from "./index-history.ts";
export type { GateNode, HumanNode, Join, MapOver, Node, NodeKind, Question, WorkNode } from "./node.ts";
export { type Progress, progressOf } from "./progress.ts";
export { retriesOf } from "./retries.ts";
export type { Feedback, Verdict } from "./scope-values.ts";
export type { Graph, Workflow } from "./workflow.ts";
