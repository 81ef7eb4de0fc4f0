import Table from "cli-table3";
import type { Output } from "./context.ts";
import { oneLine, wrapLine } from "./safe-text.ts";

/** A column: its title, and how wide it may get; null takes what the others leave. */
export interface Column {
  readonly title: string;
  readonly max: number | null;
  /** What does not fit goes on in the next line; otherwise it is cut off. */
  readonly wraps?: true;
}

const NO_LINES = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};
const LEAST_WIDTH = 20;

/** A cell: its text, and its colour where it has one. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

/** Columns that fit the output. What does not fit is cut off, with an ellipsis, unless its column wraps. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { colours, width }: Output,
): string {
  const cells = rows.map((row) => row.map(textOf).map(oneLine));
  const wanted = columns.map(({ title, max }, index) => {
    const longest = Math.max(title.length, ...cells.map((row) => row[index]?.length ?? 0));
    return max === null ? longest : Math.min(max, longest);
  });
  const open = columns.findIndex(({ max }) => max === null);
  const taken = wanted.reduce((total, one, index) => total + (index === open ? 0 : one), 0) + 2 * (columns.length - 1);
  const widths = wanted.map((one, index) =>
    index === open ? Math.min(one, Math.max(LEAST_WIDTH, width - taken)) : one,
  );
  const table = new Table({
    head: columns.map(({ title }, index) => colours.quiet(shorten(title, widths[index] ?? title.length))),
    chars: NO_LINES,
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
    colWidths: widths,
  });
  for (const [index, row] of cells.entries()) {
    table.push(
      row.map((text, column) =>
        fit(text, { column: columns[column], width: widths[column] ?? 0, paint: paintOf(rows[index]?.[column]) }),
      ),
    );
  }
  const lines = table.toString().split("\n");
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

interface Fitting {
  readonly column: Column | undefined;
  readonly width: number;
  readonly paint: (text: string) => string;
}

function fit(text: string, { column, width, paint }: Fitting): string {
  const lines = column?.wraps === true ? wrapLine(text, width) : [shorten(text, width)];
  return lines.map(paint).join("\n");
}

function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}

function paintOf(cell: Cell | undefined): (text: string) => string {
  return cell === undefined || typeof cell === "string" ? (text) => text : cell.paint;
}
