import type { Approval } from "@holdpoint/protocol";
import type { Output } from "../context.ts";

type Kind = keyof Approval["decisions"];

/** The command for each kind of decision, but for the request's id and hash. */
const COMMANDS = {
  approve: ["approve", ""],
  approve_with_edits: ["edit", " --args '<json>'"],
  reject: ["reject", " --note '<why>'"],
  reject_and_abort: ["abort", " --note '<why>'"],
  respond: ["respond", " --answer '<json>'"],
  skip: ["skip", ""],
  escalate: ["escalate", ""],
} as const satisfies Record<Kind, readonly [string, string]>;

/** The exact command lines for what this caller may decide, or why there is none. */
export function howToDecide({ id, argsHash, decisions }: Approval, { colours }: Output): string {
  // The keys of a record of all kinds.
  const kinds = Object.keys(COMMANDS) as Kind[];
  const lines = kinds.flatMap((kind) => {
    const [verb, more] = COMMANDS[kind];
    return decisions[kind] === null ? [`  holdpoint approvals ${verb} ${id} --hash ${argsHash}${more}\n`] : [];
  });
  if (lines.length > 0) return `${colours.quiet("You may:")}\n${lines.join("")}`;
  const rules = new Set(Object.values(decisions).flatMap((rule) => (rule === null ? [] : [rule.replaceAll("_", " ")])));
  return `${colours.quiet("You may only look:")} ${[...rules].join(", ")}\n`;
}
