import { existsSync, readFileSync } from "node:fs";

/** A line of a log: JSON with the name of what happened. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly event: string };

const TAIL_LINES = 15;

/** The lines of a log that say what happened, oldest first; lines of any other form are left out. */
export function readLog(file: string): readonly LogLine[] {
  return linesOf(file).flatMap((line) => {
    const entry = parse(line);
    return entry === null ? [] : [entry];
  });
}

/** The newest line of a log with this `event`, or null. */
export function findLine(file: string, event: string): LogLine | null {
  return readLog(file).findLast((line) => line.event === event) ?? null;
}

/** The last lines of a log, indented, for a person to read. */
export function tailOf(file: string): string {
  const lines = linesOf(file).slice(-TAIL_LINES);
  return lines.length === 0 ? "  (it is empty)" : lines.map((line) => `  ${line}`).join("\n");
}

function linesOf(file: string): readonly string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "");
}

function parse(line: string): LogLine | null {
  if (!line.startsWith("{")) return null;
  try {
    const entry: unknown = JSON.parse(line);
    return isLogLine(entry) ? entry : null;
  } catch {
    return null; // half a line, or no log line at all
  }
}

function isLogLine(entry: unknown): entry is LogLine {
  return typeof entry === "object" && entry !== null && "event" in entry && typeof entry.event === "string";
}
