import { canonicalJson, type JsonValue, storable } from "@holdpoint/core";
import { artifactOf, firstBytes, OUTPUT_LIMIT_BYTES, SHOWN_BYTES } from "./artifact.ts";
import type { Artifact } from "./move.ts";

/** What a task brings home, as it is kept. */
export interface KeptResult {
  /** At most 32 KB; of more, the beginning, which says where the whole is. */
  readonly result: JsonValue;
  readonly artifacts: readonly Artifact[];
  /** The same where the artifacts are not stored: it refers to none. */
  readonly withoutArtifacts: JsonValue;
}

/** Makes a result fit into its run's row. */
export function keepResult(given: JsonValue): KeptResult {
  const result = storable(given);
  const isText = typeof result === "string";
  const text = isText ? result : canonicalJson(result);
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes <= OUTPUT_LIMIT_BYTES) return { result, artifacts: [], withoutArtifacts: result };
  const artifact = artifactOf(text, isText ? "text/plain" : "application/json");
  const shown = firstBytes(text, SHOWN_BYTES);
  const note = (rest: string) => `${shown}\n[Cut: this is the beginning of ${sizeBytes} bytes; ${rest}.]`;
  return {
    result: note(`the whole is artifact ${artifact.sha256}`),
    artifacts: [artifact],
    withoutArtifacts: note("the rest was not kept"),
  };
}
