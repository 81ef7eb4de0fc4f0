export type { Agent, AgentDefinition, CompletedCall } from "./define-agent.ts";
export { defineAgent } from "./define-agent.ts";
export type { Effect, LookUp, Policy, Tool, ToolContext, ToolDefinition } from "./define-tool.ts";
export { defineTool } from "./define-tool.ts";
export { resolveModel } from "./resolve-model.ts";
export { ToolError } from "./tool-error.ts";
