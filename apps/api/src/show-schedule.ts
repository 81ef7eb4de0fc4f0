import type { Memory, Schedule, ScheduleChange, Slot } from "@holdpoint/protocol";
import { type Memory as StoredMemory, type Schedule as StoredSchedule, showId } from "@holdpoint/store";
import type { ScheduleChangeView, SlotView } from "@holdpoint/store/read";
import { shown } from "./show.ts";

/** A schedule as its reader sees it. */
export function showSchedule(schedule: StoredSchedule): Schedule {
  const { id, name, agent, goal, timing, overlap, catchUp, paused } = schedule;
  return {
    id: showId("schedule", id),
    name,
    agent,
    goal,
    cron: timing.cron,
    zone: timing.zone,
    at: shown(timing.onceAtMs),
    overlap,
    catchUp,
    paused: paused === null ? null : { at: shown(paused.atMs), by: paused.by },
    nextSlotAt: paused === null ? shown(schedule.nextSlotAtMs) : null,
    queuedSlotAt: shown(schedule.queuedSlotAtMs),
    createdAt: shown(schedule.createdAtMs),
    createdBy: schedule.createdBy,
    changedAt: shown(schedule.changedAtMs),
    changedBy: schedule.changedBy,
  };
}

/** What became of a slot, and why. */
export function showSlot(slot: SlotView): Slot {
  const { state, startedBy, reason } = slot;
  const earlierRunId = slot.earlierRunId === null ? null : showId("run", slot.earlierRunId);
  return {
    slotAt: shown(slot.slotAtMs),
    state,
    manual: startedBy !== null,
    startedBy,
    sentence: sentenceOf(slot, earlierRunId),
    reason,
    earlierRunId,
    runId: slot.runId === null ? null : showId("run", slot.runId),
    at: shown(slot.atMs),
  };
}

function sentenceOf({ state, startedBy, reason, runId }: SlotView, earlierRunId: string | null): string {
  const earlier = earlierRunId === null ? "an earlier run" : `the earlier run ${earlierRunId}`;
  switch (state) {
    case "started":
      return startedBy === null ? "Started in its turn." : `Started by hand by ${startedBy}.`;
    case "queued":
      return reason === "earlier_run_stopping"
        ? `Waits until ${earlier} has stopped, which was asked to give way.`
        : `Waits until ${earlier} has ended.`;
    case "replaced":
      return runId === null
        ? "A later slot came before it could start."
        : "Its run was asked to stop, since a later slot came.";
    case "skipped":
      return `Skipped: ${SKIPPED[reason ?? ""] ?? `${earlier} had not ended`}.`;
    case "missed":
      return `Missed: ${MISSED[reason ?? ""] ?? "nobody was there to start it"}.`;
  }
}

const SKIPPED: Readonly<Record<string, string>> = {
  slot_already_queued: "another slot was waiting already",
  paused: "the schedule was paused while it waited",
  deleted: "the schedule was deleted while it waited",
};

const MISSED: Readonly<Record<string, string>> = {
  too_many_missed: "nobody was there to start it, and later ones were made up in its place",
  too_old: "nobody was there to start it, and it was too old to be made up",
};

/** Who did what to a schedule. */
export function showScheduleChange({ change, by, atMs, definition }: ScheduleChangeView): ScheduleChange {
  return { change, by, at: shown(atMs), definition: definition === null ? null : { ...definition } };
}

/** A fact that is kept about somebody. */
export function showMemory({ id, subject, key, value, createdAtMs, createdBy, expiresAtMs }: StoredMemory): Memory {
  return {
    id: showId("memory", id),
    subject,
    key,
    value,
    createdAt: shown(createdAtMs),
    createdBy,
    expiresAt: shown(expiresAtMs),
  };
}
