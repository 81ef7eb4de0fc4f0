import { createHash } from "node:crypto";
import type { JsonValue } from "@holdpoint/core";
import { canonicalJson, storable } from "@holdpoint/core";
import type { Artifact } from "@holdpoint/store";

/** Outputs beyond this many bytes are stored as artifacts, and the model sees their beginning. */
export const OUTPUT_LIMIT_BYTES = 32_768;
const SHOWN_CHARACTERS = 24_000;

/** An output as a step carries it, and what has to be stored beside it. */
export interface StoredOutput {
  readonly output: JsonValue;
  readonly artifacts: readonly Artifact[];
}

/** Makes a tool's output fit: text that Postgres can hold, and at most 32 KB of it in the history. */
export function storeOutput(raw: JsonValue | undefined): StoredOutput {
  const output = storable(raw ?? null);
  const text = typeof output === "string" ? output : canonicalJson(output);
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes <= OUTPUT_LIMIT_BYTES) return { output, artifacts: [] };
  const sha256 = createHash("sha256").update(text).digest("hex");
  const mediaType = typeof output === "string" ? "text/plain" : "application/json";
  const note = `[Cut: the first ${SHOWN_CHARACTERS} characters of ${sizeBytes} bytes; the whole is artifact ${sha256}.]`;
  return {
    output: `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}\n${note}`,
    artifacts: [{ sha256, sizeBytes, mediaType, content: text }],
  };
}
