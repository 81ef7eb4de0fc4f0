import type { Memory } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { oneLine } from "../safe-text.ts";
import { type Column, renderTable } from "../table.ts";
import { localAndRelative, relative } from "../times.ts";

const COLUMNS: readonly Column[] = [
  { title: "MEMORY", max: 30 },
  { title: "OF", max: 20 },
  { title: "KEY", max: 20 },
  { title: "EXPIRES", max: 10 },
  { title: "BY", max: 16 },
  { title: "VALUE", max: null, wraps: true },
];

/** Memories as a table. */
export function showMemories(memories: readonly Memory[], { out, now }: View): string {
  if (memories.length === 0) return "no memories\n";
  const rows = memories.map(({ id, subject, key, value, expiresAt, createdBy }) => [
    id,
    subject,
    key,
    relative(expiresAt, now),
    createdBy,
    value,
  ]);
  return renderTable(COLUMNS, rows, out);
}

/** One memory in one line. */
export function showMemory({ id, subject, key, value, expiresAt }: Memory, { now }: View): string {
  return `${id} of ${subject}: ${oneLine(key)} = ${oneLine(value)}, until ${localAndRelative(expiresAt, now)}\n`;
}
