import type { Run } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { oneLine } from "../safe-text.ts";
import { waitOrEnd } from "./runs.ts";
import { statusCell } from "./status.ts";

/** A run among those above and below it, as a tree; nothing where it stands alone. */
export function showFamily(
  run: Run,
  children: { readonly items: readonly Run[]; readonly next: string | null },
  { out }: View,
): string {
  if (run.ancestors.length === 0 && children.items.length === 0) return "";
  const { colours, width } = out;
  const above = run.ancestors.map((id, depth) => line(depth, id));
  const depth = run.ancestors.length;
  const self = line(depth, `${colours.title(run.id)}  this run${startOf(run)}`);
  const below = children.items.map((child) => {
    const status = statusCell(child, out);
    const head = `${child.id}  `;
    const rest = oneLine(`  ${child.agent.name}@${child.agent.version}  ${waitOrEnd(child)}`);
    const room = width - indentOf(depth + 1).length - head.length - status.text.length - 2;
    return line(depth + 1, `${head}${status.paint(status.text)}  ${cut(rest, room)}`);
  });
  const more = children.next === null ? [] : [line(depth + 1, colours.quiet("… `runs children` lists all"))];
  return `\n${[...above, self, ...below, ...more].join("")}`;
}

function startOf({ startedBy }: Run): string {
  if (startedBy === null) return "";
  const again = startedBy.try === 1 ? "" : `, try ${startedBy.try}`;
  return `, started by ${startedBy.tool} (number ${startedBy.ordinal + 1}${again})`;
}

function line(depth: number, text: string): string {
  return `${indentOf(depth)}${text}\n`;
}

function indentOf(depth: number): string {
  return depth === 0 ? "" : `${"   ".repeat(depth - 1)}└─ `;
}

function cut(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`;
}
