import type { JsonValue } from "@holdpoint/core";
import { canonicalJson, storableText } from "@holdpoint/core";
import { type Artifact, artifactOf, firstBytes, NOT_KEPT, OUTPUT_LIMIT_BYTES, SHOWN_BYTES } from "@holdpoint/store";
import { cutText, type Encoded, encode, toPlain } from "./codec.ts";
import { nameOf } from "./log.ts";

/** Of an output beyond this many bytes the artifact is the beginning, and says so. */
export const ARTIFACT_LIMIT_BYTES = 8 * 2 ** 20;
const MESSAGE_LIMIT = 2_000;
const CODE_LIMIT = 100;

/** Of an output that is only the beginning: the hash of the artifact that has the whole, or `not_kept`. */
export interface Whole {
  readonly artifact?: string;
}

/** An output as a step carries it, and what has to be stored beside it. */
export interface StoredOutput {
  readonly output: JsonValue;
  readonly artifacts: readonly Artifact[];
  /** Where the whole is, for the step; `output` itself where that says nothing. */
  readonly whole: Whole;
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
    const note = `[The output was not kept: it cannot be written as JSON (${nameOf(error)}).]`;
    return { ...small(note), whole: { artifact: NOT_KEPT } };
  }
}

/** A failure as a step carries it: what another system says in it is bounded and can be stored. */
export function failureOutput({ code, message }: { readonly code: string; readonly message: string }): JsonValue {
  const text = (value: string, limit: number) => storableText(cutText(String(value), limit));
  return { result: "failed", code: text(code, CODE_LIMIT), message: text(message, MESSAGE_LIMIT) };
}

/** What a step says of `withoutArtifacts`. */
export function withoutWhole({ whole }: StoredOutput): Whole {
  return whole.artifact === undefined ? {} : { artifact: NOT_KEPT };
}

function small(output: JsonValue): StoredOutput {
  return { output, artifacts: [], whole: {}, withoutArtifacts: output };
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
  const artifact = artifactOf(isWhole ? text : `${kept}\n[Cut: ${first} of ${size}; ${REST_NOT_KEPT}.]`, mediaType);
  const where = isWhole
    ? `the whole is artifact ${artifact.sha256}`
    : `${first} are artifact ${artifact.sha256}, ${REST_NOT_KEPT}`;
  const shown = firstBytes(written(toPlain(json, SHOWN_BYTES)), SHOWN_BYTES);
  const note = (rest: string) => `${shown}\n[Cut: this is the beginning of ${size}; ${rest}.]`;
  const whole = { artifact: isWhole ? artifact.sha256 : NOT_KEPT };
  return { output: note(where), artifacts: [artifact], whole, withoutArtifacts: note(REST_NOT_KEPT) };
}

const REST_NOT_KEPT = "the rest was not kept";

function written(json: JsonValue): string {
  return typeof json === "string" ? json : canonicalJson(json);
}
