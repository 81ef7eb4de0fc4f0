import type {
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4ToolCall,
  LanguageModelV4ToolResult,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import type { AssistantModelMessage } from "ai";
import { CUT_OFF, failed, judgeFailure, type ModelFailure } from "./model-failure.ts";

/** A reply that is not read to its end, or that has none: says why. */
export class UnreadReply extends Error {
  override readonly name = "UnreadReply";
  readonly failure: ModelFailure;

  constructor(failure: ModelFailure) {
    super(failure.code);
    this.failure = failure;
  }
}

/** A reply beyond this many characters of text and arguments is not read to its end. */
const REPLY_LIMIT = 4 * 2 ** 20;

type Part = LanguageModelV4StreamPart;

/** What becomes of a call on its way in. */
type TakeCall = (call: LanguageModelV4ToolCall) => LanguageModelV4ToolCall;

/**
 * Reads what a provider streams, part by part, into a whole reply. The SDK's own way there (`streamText`) puts a dozen
 * streams behind each other, which costs more than all else that a worker does with a reply; what it makes of the parts
 * is the same.
 *
 * @throws {UnreadReply} the stream brought an error, came to no end, or had none in sight.
 */
export async function collectReply(
  { stream, request, response }: LanguageModelV4StreamResult,
  { signal, take }: { readonly signal: AbortSignal | undefined; readonly take: TakeCall },
): Promise<LanguageModelV4GenerateResult> {
  const reader = stream.getReader();
  // Nobody waits for what is thrown away: a provider's stream may end late, or with an error of its own.
  const stopReading = (): void => void reader.cancel(signal?.reason).catch(() => undefined);
  if (signal?.aborted) stopReading();
  else signal?.addEventListener("abort", stopReading, { once: true });
  const reply = new Reply(take);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) reply.take(next.value);
  } catch (error) {
    stopReading();
    throw error instanceof UnreadReply ? error : new UnreadReply(judgeFailure(error));
  }
  signal?.throwIfAborted();
  return { ...reply.end(), ...(request && { request }), ...(response && { response }) };
}

/** What no provider of the protocol sends. */
const UNREACHABLE = failed("transient", "model_unreachable");

interface OpenPart {
  readonly id: string;
  readonly providerMetadata?: SharedV4ProviderMetadata;
}

/** A part of text or reasoning that goes on. */
interface Written {
  readonly type: "text" | "reasoning";
  text: string;
  providerMetadata?: SharedV4ProviderMetadata;
}

/** A reply as far as it has come. */
class Reply {
  readonly #take: TakeCall;
  readonly #content: LanguageModelV4Content[] = [];
  readonly #open = { text: new Map<string, Written>(), reasoning: new Map<string, Written>() };
  readonly #callIds = new Set<string>();
  #warnings: LanguageModelV4GenerateResult["warnings"] = [];
  #end: Extract<Part, { type: "finish" }> | null = null;
  #hasBegun = false;
  #size = 0;

  constructor(take: TakeCall) {
    this.#take = take;
  }

  take(part: Part): void {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#begin(part.type === "text-start" ? "text" : "reasoning", part);
        break;
      case "text-delta":
      case "reasoning-delta":
        this.#goOn(part.type === "text-delta" ? "text" : "reasoning", part);
        break;
      case "text-end":
      case "reasoning-end":
        this.#finish(part.type === "text-end" ? "text" : "reasoning", part);
        break;
      case "tool-input-delta":
        this.#count(part.delta);
        break;
      case "tool-call":
        this.#callIds.add(part.toolCallId);
        this.#add(this.#take(part));
        break;
      case "tool-result":
        if (!this.#callIds.has(part.toolCallId)) this.#add(callBehind(part));
        this.#add(part);
        break;
      case "file":
      case "reasoning-file":
      case "source":
      case "custom":
      case "tool-approval-request":
        this.#add(part);
        break;
      case "stream-start":
        this.#warnings = part.warnings;
        break;
      case "finish":
        this.#end = part;
        break;
      case "error":
        throw new UnreadReply(judgeFailure(part.error));
      case "tool-input-start":
      case "tool-input-end":
      case "response-metadata":
      case "ping":
      case "raw":
        break;
    }
  }

  #add(part: LanguageModelV4Content): void {
    this.#hasBegun = true;
    this.#content.push(part);
  }

  #begin(type: Written["type"], { id, providerMetadata }: OpenPart): void {
    const written: Written = { type, text: "", ...(providerMetadata && { providerMetadata }) };
    this.#open[type].set(id, written);
    this.#content.push(written);
  }

  #goOn(type: Written["type"], part: OpenPart & { readonly delta: string }): void {
    // The SDK takes no notice of a text that says nothing.
    if (type === "text" && part.delta === "" && part.providerMetadata === undefined) return;
    this.#count(part.delta);
    this.#written(type, part).text += part.delta;
  }

  #finish(type: Written["type"], part: OpenPart): void {
    this.#written(type, part);
    this.#open[type].delete(part.id);
  }

  /** What a part goes on with; the latest metadata that come are its own. */
  #written(type: Written["type"], { id, providerMetadata }: OpenPart): Written {
    const written = this.#open[type].get(id);
    if (written === undefined) throw new UnreadReply(UNREACHABLE);
    if (providerMetadata !== undefined) written.providerMetadata = providerMetadata;
    return written;
  }

  #count({ length }: string): void {
    this.#hasBegun ||= length > 0;
    this.#size += length;
    if (this.#size > REPLY_LIMIT) throw new UnreadReply(failed("caller", "reply_too_long"));
  }

  end(): LanguageModelV4GenerateResult {
    // A stream that ends without a reason was cut off; one without anything has never been a reply.
    if (this.#end === null) throw new UnreadReply(this.#hasBegun ? CUT_OFF : UNREACHABLE);
    const { finishReason, usage, providerMetadata } = this.#end;
    const metadata = providerMetadata === undefined ? {} : { providerMetadata };
    return { content: this.#content, finishReason, usage, warnings: this.#warnings, ...metadata };
  }
}

/** Marks a call that nobody has made in this reply. */
const STAND_IN = { holdpoint: { standIn: true } };

/**
 * The call behind a result that a provider gives a turn later than its call: the SDK takes none without its call out of
 * a whole reply, as it does out of a streamed one. It is taken out of the message again.
 */
function callBehind({ toolCallId, toolName }: LanguageModelV4ToolResult): LanguageModelV4ToolCall {
  return {
    type: "tool-call",
    toolCallId,
    toolName,
    input: "{}",
    providerExecuted: true,
    dynamic: true,
    providerMetadata: STAND_IN,
  };
}

/** What a reply says, without the calls that only stood behind results. */
export function withoutStandIns(message: AssistantModelMessage): AssistantModelMessage {
  if (typeof message.content === "string") return message;
  const content = message.content.filter(
    (part) => part.type !== "tool-call" || part.providerOptions?.holdpoint?.standIn !== true,
  );
  return content.length === message.content.length ? message : { ...message, content };
}
