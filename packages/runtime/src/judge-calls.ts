import { type Call, canonicalJson, type JsonObject, judgePolicy, type Verdict } from "@holdpoint/core";
import { hashArgs, newId, operationIdOf } from "@holdpoint/store";
import { z } from "zod";
import { decode, type Storable } from "./codec.ts";
import type { Agent } from "./define-agent.ts";
import type { StorableObject, Tool } from "./define-tool.ts";
import { freezeArguments } from "./parse-arguments.ts";
import type { RequestedCall } from "./read-calls.ts";

const MESSAGE_LIMIT = 900;
const NAME_LIMIT = 64;

/** A call that no tool of the agent stands behind has nothing to declare. */
const NO_TOOL = { effect: { kind: "read" }, timeoutMs: 1, retries: 0, throttledForMs: 0, service: "" } as const;

/**
 * Turns what the model asked for into calls: arguments validated, frozen and hashed, an operation id minted, policy
 * asked. What is wrong with a call becomes its verdict, and later its result: it never reaches its tool or an approver.
 */
export function judgeCalls(agent: Agent, requested: readonly RequestedCall[], turn: number): readonly Call[] {
  return requested.map((request, ordinal) => {
    const tool = agent.tools.get(request.tool);
    // A model may make a name up, of any length; no tool's is longer than this.
    const name = request.tool.slice(0, NAME_LIMIT);
    const { args, verdict } = freeze(tool, request);
    const { effect, timeoutMs, retries, throttledForMs, service } = tool ?? NO_TOOL;
    const id = newId();
    const call = {
      id,
      turn,
      ordinal,
      toolCallId: request.toolCallId,
      tool: name,
      args,
      argsHash: hashArgs(name, args),
      operationId: operationIdOf(id),
      effect,
      verdict,
      timeoutMs,
      retries,
      throttledForMs,
      service,
    };
    WHOLE.add(call);
    return call;
  });
}

/**
 * The calls whose arguments are those of their hash: frozen here, or looked at once. A call is never changed, only read
 * again from its row or made anew by an edit, and then it is another object: the same one needs no second look.
 */
const WHOLE = new WeakSet<Call>();

/** Whether the stored arguments are those of the hash that was shown and approved: nobody has changed the rows. */
export function isWhole(call: Call): boolean {
  if (WHOLE.has(call)) return true;
  const isSame = hashArgs(call.tool, call.args) === call.argsHash;
  if (isSame) WHOLE.add(call);
  return isSame;
}

function freeze(
  tool: Tool | undefined,
  { input, problem, tool: name }: RequestedCall,
): { args: JsonObject; verdict: Verdict } {
  const invalid = (message: string) => ({
    args: {},
    verdict: { kind: "invalid" as const, message: message.slice(0, MESSAGE_LIMIT) },
  });
  if (tool === undefined) return invalid(`There is no tool ${name}.`);
  if (problem !== null) return invalid(problem);
  const parsed = parseArgs(tool, input);
  if (typeof parsed === "string") return invalid(`The arguments do not fit: ${parsed}`);
  return { args: parsed, verdict: judgePolicy(tool.rules, { tool: name, args: parsed }) };
}

/** What somebody who knows the tool gives it, frozen and judged by its rules. */
export function freezeCall(tool: Tool, input: unknown): { readonly args: JsonObject; readonly verdict: Verdict } {
  return freeze(tool, { tool: tool.name, toolCallId: "", input, problem: null });
}

/** The arguments as the tool takes them, frozen, or what is wrong with them. */
function parseArgs(tool: Tool, input: unknown): JsonObject | string {
  const parsed = tool.input.safeParse(input);
  if (!parsed.success) return z.prettifyError(parsed.error);
  const { args, problem } = freezeArguments(parsed.data);
  return args ?? problem;
}

/**
 * Why a tool does not take frozen arguments as they stand, where it has changed since, or a person's edit misses it; null
 * if it does.
 */
export function misfitOf(tool: Tool, args: Call["args"]): string | null {
  const parsed = parseArgs(tool, asWritten(tool, decode(args)));
  if (typeof parsed === "string") return parsed;
  return canonicalJson(parsed) === canonicalJson(args) ? null : "The tool would read them otherwise.";
}

/** What the tool's schema reads as this value; the value itself where it has no codec, or the value does not fit. */
function asWritten({ input }: Tool, value: Storable): unknown {
  try {
    const written = z.safeEncode(input, value as StorableObject);
    return written.success ? written.data : value;
  } catch {
    // A transform that goes one way: it may still change nothing the second time.
    return value;
  }
}
