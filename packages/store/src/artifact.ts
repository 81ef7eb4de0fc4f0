import { createHash } from "node:crypto";
import type { Artifact } from "./move.ts";

/** Outputs beyond this many bytes are stored as artifacts, and the history has their beginning. */
export const OUTPUT_LIMIT_BYTES = 32_768;
/** How much of such an output stays in the history, its note aside. */
export const SHOWN_BYTES = 24_000;

/** What stands in the place of an artifact's hash where the rest of an output was not kept. */
export const NOT_KEPT = "not_kept";

/** A large output, as it is stored once by its content. */
export function artifactOf(content: string, mediaType: string): Artifact {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { sha256, sizeBytes: Buffer.byteLength(content), mediaType, content };
}

/** The beginning of a text that fits, to the last whole character. */
export function firstBytes(text: string, limitBytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limitBytes));
  return text.slice(0, read);
}
