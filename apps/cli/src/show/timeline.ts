import type { TimelineEntry } from "@holdpoint/protocol";
import type { Output } from "../context.ts";
import { type Cell, type Column, renderTable } from "../table.ts";
import { localDay, preciseTime } from "../times.ts";

const COLUMNS: readonly Column[] = [
  { title: "WHO", max: 22 },
  { title: "WHAT", max: null, wraps: true },
  { title: "FROM → TO", max: 36 },
];

/** What happened to a run, oldest first, with what was refused. The day is said once if all was on one. */
export function showTimeline(timeline: readonly TimelineEntry[], out: Output): string {
  const days = new Set(timeline.map(({ at }) => localDay(at)));
  const [day] = days;
  const oneDay = days.size === 1 && day !== undefined;
  const when: Column = { title: oneDay ? `ON ${day}` : "WHEN", max: 23 };
  const rows = timeline.map((entry): readonly Cell[] => {
    const time = preciseTime(entry.at);
    return [oneDay ? time : `${localDay(entry.at)} ${time}`, ...rowOf(entry, out)];
  });
  return renderTable([when, ...COLUMNS], rows, out);
}

function rowOf(entry: TimelineEntry, { colours }: Output): readonly Cell[] {
  switch (entry.kind) {
    case "transition": {
      const reason = entry.reason === null ? "" : ` (${entry.reason.replaceAll("_", " ")})`;
      const moved = entry.from === entry.to ? entry.to : `${entry.from ?? "new"} → ${entry.to}`;
      return [actor(entry.actor), `${entry.event}${reason}`, moved];
    }
    case "step":
      return ["", { text: entry.line, paint: colours.quiet }, ""];
    case "decision": {
      const note = entry.note === null ? "" : `: ${entry.note}`;
      return [actor(entry.actor), `${entry.decision.replaceAll("_", " ")} ${entry.tool}${note}`, ""];
    }
    case "reminder":
      return ["", { text: `reminder ${entry.stage} about ${entry.tool}`, paint: colours.quiet }, ""];
    case "callback":
      return [`provider ${entry.source}`, `reports ${entry.tool} ${entry.status} (${entry.eventId})`, ""];
    case "late_evidence": {
      const settled = `attempt ${entry.attempt} was settled as ${entry.settledAs.replaceAll("_", " ")}`;
      return ["", { text: `late evidence on ${entry.tool}: ${entry.outcome}; ${settled}`, paint: colours.bad }, ""];
    }
    case "refusal":
      return [
        actor(entry.actor),
        { text: `${entry.event} refused: ${entry.rule.replaceAll("_", " ")}`, paint: colours.bad },
        { text: entry.status, paint: colours.quiet },
      ];
  }
}

/** Ids of workers are long, and only their ends differ. */
function actor({ kind, id }: { readonly kind: string; readonly id: string }): string {
  return kind === "worker" ? `worker …${id.slice(-8)}` : `${kind} ${id}`;
}
