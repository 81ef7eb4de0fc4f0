import type { Schedule, Slot } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { type Column, renderTable } from "../table.ts";
import { duration, local, localAndRelative, relative, withLocalTimes } from "../times.ts";
import { field } from "./run.ts";

const COLUMNS: readonly Column[] = [
  { title: "NAME", max: 30 },
  { title: "WHEN", max: 36 },
  { title: "NEXT", max: 16 },
  { title: "OVERLAP", max: 8 },
  { title: "GOAL", max: null },
];

/** Schedules as a table. */
export function showSchedules(schedules: readonly Schedule[], { out, now }: View): string {
  if (schedules.length === 0) return "no schedules\n";
  const rows = schedules.map((schedule) => [
    schedule.name,
    whenInWords(schedule),
    nextInShort(schedule, { out, now }),
    schedule.overlap,
    schedule.goal,
  ]);
  return renderTable(COLUMNS, rows, out);
}

function nextInShort({ paused, nextSlotAt }: Schedule, { out, now }: View) {
  if (paused !== null) return { text: "paused", paint: out.colours.waiting };
  return nextSlotAt === null ? { text: "over", paint: out.colours.quiet } : relative(nextSlotAt, now);
}

function whenInWords({ cron, zone, at }: Schedule): string {
  if (at !== null) return `once, ${local(at)}`;
  return `${cron ?? ""} ${zone ?? ""}`;
}

/** A schedule by itself. */
export function showSchedule(schedule: Schedule, view: View): string {
  const { out, now } = view;
  const { name, agent, goal, catchUp, paused, nextSlotAt, queuedSlotAt, overlap } = schedule;
  const made =
    catchUp.slots === 0 ? "nothing" : `${catchUp.slots} at most, no older than ${duration(catchUp.withinMs)}`;
  const lines: readonly (readonly [string, string | null])[] = [
    ["Agent", `${agent.name}@${agent.version}, for ${schedule.createdBy}`],
    ["Goal", goal],
    ["When", whenInWords(schedule)],
    ["Next slot", paused === null ? (nextSlotAt === null ? "none" : localAndRelative(nextSlotAt, now)) : null],
    ["Paused", paused === null ? null : `by ${paused.by}, ${localAndRelative(paused.at, now)}`],
    ["Slot waiting", queuedSlotAt === null ? null : localAndRelative(queuedSlotAt, now)],
    ["Overlap", overlap],
    ["Makes up", made],
    ["Changed", `by ${schedule.changedBy}, ${localAndRelative(schedule.changedAt, now)}`],
  ];
  const fields = lines.map(([label, text]) => (text === null ? "" : field(label, text, out)));
  return `${out.colours.title(name)}\n${fields.join("")}`;
}

/** A schedule, and what became of its latest slots. */
export function showSchedulePage(
  { schedule, slots }: { readonly schedule: Schedule; readonly slots: readonly Slot[] },
  view: View,
): string {
  return `${showSchedule(schedule, view)}\n${showSlots(slots, view)}`;
}

const SLOT_COLUMNS: readonly Column[] = [
  { title: "SLOT", max: 19 },
  { title: "STATE", max: 16 },
  { title: "RUN", max: 30 },
  { title: "WHY", max: null, wraps: true },
];

function showSlots(slots: readonly Slot[], { out, now }: View): string {
  if (slots.length === 0) return "no slots yet\n";
  const rows = slots.map(({ slotAt, state, manual, runId, sentence }) => [
    local(slotAt),
    { text: manual ? `${state}, manual` : state, paint: paintOf(state, out.colours) },
    runId ?? "",
    withLocalTimes(sentence, now),
  ]);
  return renderTable(SLOT_COLUMNS, rows, out);
}

function paintOf(state: Slot["state"], { good, bad, quiet }: View["out"]["colours"]) {
  switch (state) {
    case "started":
      return good;
    case "missed":
      return bad;
    case "queued":
    case "skipped":
    case "replaced":
      return quiet;
  }
}
