import { createHash } from "node:crypto";
import type { JsonValue } from "@holdpoint/core";
import { canonicalJson, storable } from "@holdpoint/core";
import type { Artifact } from "@holdpoint/store";

/** Outputs beyond this many bytes are stored as artifacts, and the model sees their beginning. */
export const OUTPUT_LIMIT_BYTES = 32_768;
const SHOWN_CHARACTERS = 24_000;
/** Of an output beyond this many bytes the artifact is the beginning, and says so. */
export const ARTIFACT_LIMIT_BYTES = 8 * 2 ** 20;

/** An output as a step carries it, and what has to be stored beside it. */
export interface StoredOutput {
  readonly output: JsonValue;
  readonly artifacts: readonly Artifact[];
}

/**
 * Makes a tool's output fit: text that Postgres can hold, and at most 32 KB of it in the history. What the call did has
 * happened, so its outcome is stored in any case: an output that is too large or no JSON is noted as such.
 */
export function storeOutput(raw: JsonValue | undefined): StoredOutput {
  try {
    return fit(storable(raw ?? null));
  } catch (error) {
    // A tool's value may be anything at run time: a cycle, a BigInt, more text than a string can hold.
    const name = error instanceof Error ? error.name : "unknown";
    return { output: `[The output was not kept: it cannot be written as JSON (${name}).]`, artifacts: [] };
  }
}

function fit(output: JsonValue): StoredOutput {
  const text = typeof output === "string" ? output : canonicalJson(output);
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes <= OUTPUT_LIMIT_BYTES) return { output, artifacts: [] };
  const isWhole = sizeBytes <= ARTIFACT_LIMIT_BYTES;
  // JSON that is cut is none any more.
  const mediaType = typeof output === "string" || !isWhole ? "text/plain" : "application/json";
  const artifact = artifactOf(isWhole ? text : beginning(text, sizeBytes), mediaType);
  const kept = isWhole
    ? `the whole is artifact ${artifact.sha256}`
    : `the first ${ARTIFACT_LIMIT_BYTES} bytes are artifact ${artifact.sha256}, the rest was not kept`;
  const note = `[Cut: the first ${SHOWN_CHARACTERS} characters of ${sizeBytes} bytes; ${kept}.]`;
  return { output: `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}\n${note}`, artifacts: [artifact] };
}

function artifactOf(content: string, mediaType: string): Artifact {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { sha256, sizeBytes: Buffer.byteLength(content), mediaType, content };
}

/** The beginning that fits, to the last whole character, and how much there was. */
function beginning(text: string, sizeBytes: number): string {
  const bytes = new Uint8Array(ARTIFACT_LIMIT_BYTES);
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return `${text.slice(0, read)}\n[Cut: the first ${ARTIFACT_LIMIT_BYTES} of ${sizeBytes} bytes; the rest was not kept.]`;
}
