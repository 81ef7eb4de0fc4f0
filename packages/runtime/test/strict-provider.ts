import type { ModelServer } from "./model-server.ts";

/** A message of a request, as OpenAI's protocol words it. */
export interface RequestMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly RequestedFunction[];
  readonly tool_call_id?: string;
}

interface RequestedFunction {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Answers as told, but with 400 to a conversation that is not exactly what providers take, and says why. */
export function strictly(answer: ModelServer["answer"]): ModelServer["answer"] {
  return (request, response, body) => {
    const mismatch = mismatchIn(body.messages as readonly RequestMessage[]);
    if (mismatch === null) return answer(request, response, body);
    response.writeHead(400, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: mismatch, type: "invalid_request_error", code: "mismatch" } }));
  };
}

/** What the strictest provider would not take in a conversation; null: nothing. */
function mismatchIn(messages: readonly RequestMessage[]): string | null {
  const seen = new Set<string>();
  let open: readonly string[] = [];
  for (const message of messages) {
    const wrong = message.role === "tool" ? wrongResult(message, open) : wrongMessage(message, open, seen);
    if (wrong !== null) return wrong;
    open = message.role === "tool" ? open.slice(1) : (message.tool_calls ?? []).map(({ id }) => id);
  }
  if (open.length > 0) return `no result of ${open.join(", ")}`;
  return messages.at(-1)?.role === "assistant" ? "a reply stands last" : null;
}

function wrongResult({ tool_call_id: id, content }: RequestMessage, open: readonly string[]): string | null {
  if (open[0] !== id) return `the result of ${id} is out of place`;
  return isCleanText(content) ? null : `the result of ${id} is no clean text`;
}

function wrongMessage(message: RequestMessage, open: readonly string[], seen: Set<string>): string | null {
  const { role, content, tool_calls: calls = [] } = message;
  if (open.length > 0) return `no result of ${open.join(", ")}`;
  if (role !== "system" && calls.length === 0 && !isCleanText(content)) return `a message of the ${role} says nothing`;
  for (const call of calls) {
    const wrong = wrongCall(call, seen);
    if (wrong !== null) return wrong;
  }
  return null;
}

function wrongCall({ id, function: called }: RequestedFunction, seen: Set<string>): string | null {
  if (seen.has(id)) return `the call id ${id} is there twice`;
  seen.add(id);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(called.name)) return `no tool could be called ${called.name}`;
  return isObject(called.arguments) ? null : `the arguments of ${id} are no object`;
}

function isCleanText(content: unknown): boolean {
  return typeof content === "string" && content.trim() !== "" && content.isWellFormed() && !content.includes("\u0000");
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
