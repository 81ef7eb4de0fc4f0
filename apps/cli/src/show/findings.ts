import type { Finding } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { renderTable } from "../table.ts";
import { relative } from "../times.ts";

const COLUMNS = [
  { title: "RUN", max: 30 },
  { title: "CAME", max: 10 },
  { title: "TOOL", max: 20 },
  { title: "OUTSIDE", max: 24 },
  { title: "WHAT", max: null, wraps: true },
] as const;

/** Findings as a table. */
export function showFindings(findings: readonly Finding[], { out, now }: View): string {
  if (findings.length === 0) return "no findings\n";
  const rows = findings.map((finding) => [
    finding.runId,
    relative(finding.at, now),
    finding.tool,
    finding.evidence.externalRef ?? finding.externalRef ?? "",
    { text: inWords(finding), paint: out.colours.bad },
  ]);
  return renderTable(COLUMNS, rows, out);
}

function inWords({ attempt, settledAs, settledBy, happened, evidence, runStatus }: Finding): string {
  const by = settledBy === null ? "" : ` by ${settledBy}`;
  const code = evidence.errorCode === null ? "" : ` (${evidence.errorCode})`;
  const what = happened ? "it happened" : `it did not happen${code}`;
  return `attempt ${attempt} was settled as ${settledAs.replaceAll("_", " ")}${by}; ${what}. The run is ${runStatus}`;
}
