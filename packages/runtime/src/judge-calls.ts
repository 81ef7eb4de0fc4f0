import { createHash } from "node:crypto";
import {
  type ApprovalRule,
  type Call,
  canonicalJson,
  type JsonObject,
  type JsonValue,
  storable,
  type Verdict,
} from "@holdpoint/core";
import { newId, newOperationId } from "@holdpoint/store";
import { z } from "zod";
import type { RequestedCall } from "./call-model.ts";
import type { Agent } from "./define-agent.ts";
import type { Policy, Tool } from "./define-tool.ts";

const DAY_MS = 86_400_000;
const MESSAGE_LIMIT = 900;
const NAME_LIMIT = 64;

/** A call that no tool of the agent stands behind has nothing to declare. */
const NO_TOOL = { effect: { kind: "read" }, timeoutMs: 1, retries: 0 } as const;

/**
 * Turns what the model asked for into calls: arguments validated, frozen and hashed, an operation id minted, policy
 * asked. What is wrong with a call becomes its verdict, and later its result: it never reaches its tool or an approver.
 */
export function judgeCalls(
  agent: Agent,
  requested: readonly RequestedCall[],
  { turn, requester }: { readonly turn: number; readonly requester: string },
): readonly Call[] {
  return requested.map((request, ordinal) => {
    const tool = agent.tools.get(request.tool);
    // A model may make a name up, of any length; no tool's is longer than this.
    const name = request.tool.slice(0, NAME_LIMIT);
    const { args, verdict } = freeze(tool, request, requester);
    const { effect, timeoutMs, retries } = tool ?? NO_TOOL;
    return {
      id: newId(),
      turn,
      ordinal,
      toolCallId: request.toolCallId,
      tool: name,
      args,
      argsHash: hashOf(name, args),
      operationId: newOperationId(),
      effect,
      verdict,
      timeoutMs,
      retries,
    };
  });
}

/** The hash that an approval binds to: tool and arguments, whatever order the keys came in. */
export function hashOf(tool: string, args: JsonValue): string {
  return createHash("sha256")
    .update(canonicalJson({ v: 1, tool, args }))
    .digest("hex");
}

function freeze(
  tool: Tool | undefined,
  { input, problem, tool: name }: RequestedCall,
  requester: string,
): { args: JsonObject; verdict: Verdict } {
  const invalid = (message: string) => ({
    args: {},
    verdict: { kind: "invalid" as const, message: message.slice(0, MESSAGE_LIMIT) },
  });
  if (tool === undefined) return invalid(`There is no tool ${name}.`);
  if (problem !== null) return invalid(problem);
  const parsed = tool.input.safeParse(input);
  if (!parsed.success) return invalid(`The arguments do not fit: ${z.prettifyError(parsed.error)}`);
  // Through JSON, so that what is frozen is what is stored: a schema may give `undefined` for what is not there.
  const args = storable(JSON.parse(JSON.stringify(parsed.data)) as JsonObject);
  return { args, verdict: verdictOf(name, tool.policy(args, requester)) };
}

/** @throws {TypeError} the policy asks for an approval that nobody could give. */
function verdictOf(tool: string, policy: Policy): Verdict {
  if (policy === null) return { kind: "allowed" };
  if ("deny" in policy) return { kind: "denied", rule: policy.rule, message: policy.deny };
  const { roles = [], users = [] } = policy;
  if (roles.length + users.length === 0)
    throw new TypeError(`Tool ${tool}: rule ${policy.rule} names no role and no user`);
  const approval: ApprovalRule = {
    rule: policy.rule,
    approvers: { roles, users },
    deadlineMs: policy.deadlineMs ?? DAY_MS,
    onDeadline: policy.onDeadline ?? "reject",
    validForMs: policy.validForMs ?? DAY_MS,
  };
  return { kind: "needs_approval", approval };
}
