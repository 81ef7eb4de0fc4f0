import type { Figure } from "./figure.ts";
import type { Machine } from "./machine.ts";
import { describeGoal, type Row } from "./row.ts";
import type { Settings } from "./settings.ts";

/** All that a whole run of the benchmark has found. */
export interface Report {
  readonly generatedAt: string;
  readonly machine: Machine;
  readonly settings: Settings;
  readonly results: readonly Result[];
}

export interface Result {
  readonly figure: Pick<Figure, "name" | "measures">;
  readonly rows: readonly Row[];
}

/** Goals that were not reached, each in a line. */
export function missed(report: Report): readonly string[] {
  return report.results
    .flatMap(({ rows }) => rows)
    .filter(({ met }) => met === false)
    .map((row) => `${nameOf(row)}: ${cells(row).slice(1).join(" · ")}`);
}

/** The report as Markdown tables, one for each kind of figure; it reads well in a terminal, too. */
export function renderReport({ generatedAt, machine, settings, results }: Report): string {
  const head = [
    `Generated ${generatedAt} at revision ${machine.revision}: ${settings.rounds} rounds${settings.quick ? " of the quick trials, which say little about speed" : ""}, medians.`,
    `Machine: ${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.system}; node ${machine.node}, Postgres ${machine.postgres}, ${machine.redis === null ? "no Redis" : `Redis ${machine.redis}`}.`,
  ];
  const sections = results.map(({ figure, rows }) => `### ${figure.name}\n\n${figure.measures}\n\n${table(rows)}`);
  return `${head.join("\n")}\n\n${sections.join("\n\n")}\n`;
}

const HEADINGS = ["figure", "queue", "value", "ceiling", "ratio", "goal", "met"];

function table(rows: readonly Row[]): string {
  const lines = [HEADINGS, ...rows.map(cells)];
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [render(HEADINGS), rule, ...rows.map((row) => render(cells(row)))].join("\n");
}

function cells(row: Row): readonly string[] {
  const { value, unit, ceiling, ratio, goal, met } = row;
  return [
    row.figure,
    row.queue ?? "–",
    `${number(value)} ${unit}`,
    ceiling === null ? "–" : number(ceiling),
    ratio === null ? "–" : ratio.toFixed(2),
    goal === null ? "–" : describeGoal(goal, unit),
    met === null ? "–" : met ? "yes" : "**no**",
  ];
}

function nameOf({ figure, queue }: Row): string {
  return queue === null ? figure : `${figure} (${queue})`;
}

/** Three digits that count; thousands set apart. */
function number(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en").replaceAll(",", " ");
  return Number(value.toPrecision(3)).toString();
}
