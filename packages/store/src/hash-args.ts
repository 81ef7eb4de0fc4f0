import { hash } from "node:crypto";
import { canonicalJson, type JsonValue } from "@holdpoint/core";

/** The hash that an approval binds to: tool and arguments, whatever order the keys came in. */
export function hashArgs(tool: string, args: JsonValue): string {
  // The canonical JSON of an object of the three.
  return hash("sha256", `{"args":${canonicalJson(args)},"tool":${canonicalJson(tool)},"v":1}`, "hex");
}
