import { createHash } from "node:crypto";
import type { JsonValue } from "@holdpoint/core";
import { canonicalJson, storableText } from "@holdpoint/core";
import type { Artifact } from "@holdpoint/store";
import { cutText, type Encoded, encode, toPlain } from "./codec.ts";
import { nameOf } from "./log.ts";

/** Outputs beyond this many bytes are stored as artifacts, and the model sees their beginning. */
export const OUTPUT_LIMIT_BYTES = 32_768;
/** How much of such an output stays in the history, its note aside. */
export const SHOWN_BYTES = 24_000;
/** Of an output beyond this many bytes the artifact is the beginning, and says so. */
export const ARTIFACT_LIMIT_BYTES = 8 * 2 ** 20;
const MESSAGE_LIMIT = 2_000;
const CODE_LIMIT = 100;

/** An output as a step carries it, and what has to be stored beside it. */
export interface StoredOutput {
  readonly output: JsonValue;
  readonly artifacts: readonly Artifact[];
  /** What a step carries instead where the artifacts cannot be stored: it refers to none. */
  readonly withoutArtifacts: JsonValue;
}

/**
 * Makes a tool's output fit: values that can be stored (see `codec.ts`), and at most 32 KB of them in the history. What
 * the call did has happened, so its outcome is stored in any case: what cannot be kept is noted as such.
 */
export function storeOutput(raw: unknown): StoredOutput {
  try {
    return fit(encode(raw));
  } catch (error) {
    // The codec takes whatever a tool gives; but an outcome does not depend on that.
    return small(`[The output was not kept: it cannot be written as JSON (${nameOf(error)}).]`);
  }
}

/** A failure as a step carries it: what another system says in it is bounded and can be stored. */
export function failureOutput({ code, message }: { readonly code: string; readonly message: string }): JsonValue {
  const text = (value: string, limit: number) => storableText(cutText(String(value), limit));
  return { result: "failed", code: text(code, CODE_LIMIT), message: text(message, MESSAGE_LIMIT) };
}

function small(output: JsonValue): StoredOutput {
  return { output, artifacts: [], withoutArtifacts: output };
}

function fit({ json, isCut }: Encoded): StoredOutput {
  const text = written(json);
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes <= OUTPUT_LIMIT_BYTES && !isCut) return small(json);
  const isWhole = sizeBytes <= ARTIFACT_LIMIT_BYTES && !isCut;
  const size = isCut ? `more than ${sizeBytes} bytes` : `${sizeBytes} bytes`;
  const kept = firstBytes(text, ARTIFACT_LIMIT_BYTES);
  const first = `the first ${Math.min(sizeBytes, ARTIFACT_LIMIT_BYTES)} bytes`;
  // JSON that is cut is none any more.
  const mediaType = typeof json === "string" || !isWhole ? "text/plain" : "application/json";
  const artifact = artifactOf(isWhole ? text : `${kept}\n[Cut: ${first} of ${size}; ${NOT_KEPT}.]`, mediaType);
  const where = isWhole
    ? `the whole is artifact ${artifact.sha256}`
    : `${first} are artifact ${artifact.sha256}, ${NOT_KEPT}`;
  const shown = firstBytes(written(toPlain(json, SHOWN_BYTES)), SHOWN_BYTES);
  const note = (rest: string) => `${shown}\n[Cut: this is the beginning of ${size}; ${rest}.]`;
  return { output: note(where), artifacts: [artifact], withoutArtifacts: note(NOT_KEPT) };
}

const NOT_KEPT = "the rest was not kept";

function written(json: JsonValue): string {
  return typeof json === "string" ? json : canonicalJson(json);
}

function artifactOf(content: string, mediaType: string): Artifact {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { sha256, sizeBytes: Buffer.byteLength(content), mediaType, content };
}

/** The beginning of a text that fits, to the last whole character. */
function firstBytes(text: string, limitBytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limitBytes));
  return text.slice(0, read);
}
