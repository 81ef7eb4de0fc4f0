export { type JudgedCall, judgePolicy, type PolicyRule, type Verdict } from "@holdpoint/core";
export type { WorkflowAgent, WorkflowBinding } from "./bind-workflow.ts";
export { bindWorkflow } from "./bind-workflow.ts";
export type { Clock } from "./clock.ts";
export { systemClock } from "./clock.ts";
export type { Storable } from "./codec.ts";
export type { Worker, WorkerOptions } from "./create-worker.ts";
export { createWorker } from "./create-worker.ts";
export type { Agent, AgentDefinition, CompletedCall, Model, Runnable } from "./define-agent.ts";
export { defineAgent } from "./define-agent.ts";
export type { ChildRun, ChildRunsDefinition } from "./define-child-runs.ts";
export { defineChildRuns } from "./define-child-runs.ts";
export type { Task, TaskDefinition } from "./define-task.ts";
export { defineTask } from "./define-task.ts";
export type { TimerDefinition } from "./define-timer.ts";
export { defineTimer } from "./define-timer.ts";
export type {
  Effect,
  LookUp,
  Settled,
  SettlementDefinition,
  StorableObject,
  Tool,
  ToolContext,
  ToolDefinition,
  ToolOutcome,
} from "./define-tool.ts";
export { defineTool } from "./define-tool.ts";
export type { Log } from "./log.ts";
export { resolveModel } from "./resolve-model.ts";
export { ToolError } from "./tool-error.ts";
export type { ApprovalTerms, ToolPresentation, ToolRule } from "./tool-rules.ts";
