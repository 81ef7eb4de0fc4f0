import { createHash } from "node:crypto";
import { canonicalJson, type JsonValue } from "@holdpoint/core";

/** The hash that an approval binds to: tool and arguments, whatever order the keys came in. */
export function hashArgs(tool: string, args: JsonValue): string {
  return createHash("sha256")
    .update(canonicalJson({ v: 1, tool, args }))
    .digest("hex");
}
