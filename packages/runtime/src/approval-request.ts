import type { ApprovalRule, Call, JsonObject, JsonValue, RequestedApproval, StepBody } from "@holdpoint/core";
import { canonicalJson, present } from "@holdpoint/core";
import { type ApprovalRequest, type LoadedRun, newId } from "@holdpoint/store";
import { z } from "zod";
import { toPlain } from "./codec.ts";
import type { Runnable } from "./define-agent.ts";
import type { Tool } from "./define-tool.ts";
import { misfitOf } from "./judge-calls.ts";

const REASON_LIMIT = 2_000;
const EXCERPT_LIMIT = 500;
const EVIDENCE_SHOWN = 10;
const NOT_SHOWN = "[not shown: the agent has no such tool any more]";

/** A request with all that whoever decides it needs to see. */
export function approvalRequest(
  view: Pick<LoadedRun, "run" | "steps" | "calls" | "memories">,
  { call, approval, editedBy, agent }: RequestedApproval & { readonly agent: Pick<Runnable, "tools" | "memories"> },
): ApprovalRequest {
  const tool = agent.tools.get(call.tool);
  const nothing = { redact: [], amount: null, risk: null };
  const shown = toPlain(call.args);
  // What a person writes is JSON; a tool whose schema makes Dates or bigints of it would read it otherwise.
  const isEditable = tool !== undefined && canonicalJson(shown) === canonicalJson(call.args);
  return {
    id: newId(),
    callId: call.id,
    tool: call.tool,
    args: canonicalJson(call.args),
    argsHash: call.argsHash,
    terms: isEditable ? approval : withoutEdits(approval),
    request: {
      // Only the tool knows what is to be left out.
      ...present(tool === undefined ? NOT_SHOWN : shown, tool?.presentation ?? nothing),
      modelReason: reasonOf(view, call.turn),
      evidence: [...evidenceOf(view), ...(tool === undefined || editedBy === null ? [] : misfits(tool, call))],
      editSchema: isEditable && approval.decisions.includes("approve_with_edits") ? inputSchemaOf(tool.input) : null,
    },
    excluded: approval.fourEyes ? causesOf(view, agent) : [],
    editedBy,
    approval: null,
  };
}

function withoutEdits(approval: ApprovalRule): ApprovalRule {
  return { ...approval, decisions: approval.decisions.filter((kind) => kind !== "approve_with_edits") };
}

/** Everybody who has caused the run's calls: who asked for it or submitted it, who has told it something since, or before as a memory. */
function causesOf(
  { run, steps, memories }: Pick<LoadedRun, "run" | "steps" | "memories">,
  agent: Pick<Runnable, "memories">,
): readonly string[] {
  const said = steps.flatMap(({ body }) => (body.kind === "message" ? [body.from] : []));
  const kept = agent.memories ? memories.map(({ createdBy }) => createdBy) : [];
  return [...new Set([run.requester, run.submittedBy, ...said, ...kept])];
}

function reasonOf({ steps }: Pick<LoadedRun, "steps">, turn: number): string | null {
  const reply = steps.findLast(({ body }) => body.kind === "model_reply" && body.turn === turn)?.body;
  const text = reply?.kind === "model_reply" ? reply.text.trim() : "";
  return text === "" ? null : cut(text, REASON_LIMIT);
}

/** The run's latest results, the beginnings of them. */
function evidenceOf({ steps, calls }: Pick<LoadedRun, "steps" | "calls">): ApprovalRequest["request"]["evidence"] {
  const tools = new Map(calls.map(({ id, tool }) => [id, tool]));
  const results = steps.flatMap(({ body }) => (body.kind === "tool_result" ? [body] : []));
  return results.slice(-EVIDENCE_SHOWN).map((body) => resultOf(body, tools));
}

/** Whoever changed the arguments, or is to approve them, has to know that the tool would not run with them. */
function misfits(tool: Tool, { args }: Call): ApprovalRequest["request"]["evidence"] {
  const misfit = misfitOf(tool, args);
  if (misfit === null) return [];
  return [{ tool: tool.name, result: "invalid", excerpt: cut(`These arguments do not fit: ${misfit}`, EXCERPT_LIMIT) }];
}

function resultOf(
  { callId, result, output }: Extract<StepBody, { kind: "tool_result" }>,
  tools: ReadonlyMap<string, string>,
): ApprovalRequest["request"]["evidence"][number] {
  return { tool: tools.get(callId) ?? callId, result, excerpt: cut(textOf(toPlain(output)), EXCERPT_LIMIT) };
}

function textOf(output: JsonValue): string {
  return typeof output === "string" ? output : canonicalJson(output);
}

function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit).toWellFormed()}…`;
}

/** What a tool's arguments must look like, as JSON schema. */
export function inputSchemaOf(input: z.ZodType): JsonObject {
  // zod's JSON schema is plain JSON.
  return JSON.parse(JSON.stringify(z.toJSONSchema(input, { io: "input" }))) as JsonObject;
}
