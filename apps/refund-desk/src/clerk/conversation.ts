import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";
import { z } from "zod";
import { EXPIRED, NOT_ESTABLISHED, REJECTED, readFailure } from "../tool-result.ts";

/** How a call ended, as the prompt tells it. */
export type PastResult = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly code: string };

/** A tool call that the clerk made before; `result` is `null` while there is none. */
export interface PastCall {
  readonly tool: string;
  readonly input: unknown;
  readonly result: PastResult | null;
}

/** What matters of a prompt: the customer's words and the calls so far, each in order. */
export interface Conversation {
  readonly customerTexts: readonly string[];
  readonly calls: readonly PastCall[];
}

/** Reads a prompt. Instructions and the clerk's own words decide nothing, so they are left out. */
export function readConversation(prompt: LanguageModelV4Prompt): Conversation {
  const customerTexts = prompt
    .flatMap((message) => (message.role === "user" ? message.content : []))
    .flatMap((part) => (part.type === "text" ? part.text : []));
  const results = new Map(
    prompt
      .flatMap((message) => (message.role === "tool" ? message.content : []))
      .flatMap((part) => (part.type === "tool-result" ? [[part.toolCallId, readOutput(part.output)] as const] : [])),
  );
  const calls = prompt
    .flatMap((message) => (message.role === "assistant" ? message.content : []))
    .flatMap((part) => (part.type === "tool-call" ? part : []))
    .map(({ toolCallId, toolName, input }) => ({ tool: toolName, input, result: results.get(toolCallId) ?? null }));
  return { customerTexts, calls };
}

function readOutput(output: LanguageModelV4ToolResultOutput): PastResult {
  switch (output.type) {
    case "json":
      return { ok: true, value: withoutNote(output.value) };
    case "text":
      return { ok: true, value: readJson(output.value) };
    case "content":
      return {
        ok: true,
        value: readJson(output.value.map((part) => (part.type === "text" ? part.text : "")).join("")),
      };
    case "error-json":
      return { ok: false, code: readFailure(withoutNote(output.value)) };
    case "error-text":
      return { ok: false, code: understandFailure(output.value) };
    case "execution-denied":
      return { ok: false, code: REJECTED };
  }
}

const WithNote = z.strictObject({ note: z.string(), output: z.unknown() });

/** A result of changed arguments comes with a note; the result itself says what was really done. */
function withoutNote(value: unknown): unknown {
  const noted = WithNote.safeParse(value);
  return noted.success ? noted.data.output : value;
}

/** Text results may carry JSON; text that is none stays text. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** An error without a code is a sentence for a reader of sentences. */
function understandFailure(text: string): string {
  if (/\bwas rejected\b/i.test(text)) return REJECTED;
  if (/\bnobody decided\b/i.test(text)) return EXPIRED;
  if (/\bnobody knows\b/i.test(text)) return NOT_ESTABLISHED;
  return readFailure(readJson(text));
}
