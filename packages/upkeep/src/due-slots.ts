import { nextSlot } from "@holdpoint/protocol";
import type { DueSlots, MissedReason, Schedule } from "@holdpoint/store";

/** Later than this, a slot is one that nobody was there for. */
const ON_TIME_MS = 60_000;
/** The most slots that are judged at once: after a long time away the rest follows in the next passes. */
export const MOST_SLOTS = 500;

/**
 * What is due of a schedule at a moment: the slot to start, those that are not made up, and where the schedule stands
 * after that. Of slots in time each is started; of those that nobody was there for, the newest, within limits. One slot
 * is started at a time, the oldest first; what is due beside it is so again in the next pass.
 *
 * @throws {Error} the pattern or the zone cannot be read any more.
 */
export function dueSlots(schedule: Schedule, nowMs: number): DueSlots | null {
  const { catchUp } = schedule;
  if (schedule.nextSlotAtMs === null || schedule.nextSlotAtMs > nowMs) return null;
  const slots = slotsUntil(schedule, nowMs);
  const late = slots.filter((slotAtMs) => isLate(slotAtMs, nowMs));
  // The last ones seen are not the last there are: they are judged when those before them have been.
  const judged = slots.length > MOST_SLOTS ? slots.slice(0, MOST_SLOTS) : slots;
  const missed: DueSlots["missed"][number][] = [];
  for (const slotAtMs of judged) {
    const reason = missedReason(slotAtMs);
    if (reason === null) return { slotAtMs, missed, nextSlotAtMs: slotAfter(schedule, slotAtMs) };
    missed.push({ slotAtMs, reason });
  }
  return { slotAtMs: null, missed, nextSlotAtMs: slotAfter(schedule, judged.at(-1) ?? schedule.nextSlotAtMs) };

  function missedReason(slotAtMs: number): MissedReason | null {
    if (!isLate(slotAtMs, nowMs)) return null;
    if (nowMs - slotAtMs > catchUp.withinMs) return "too_old";
    return late.length - late.indexOf(slotAtMs) > catchUp.slots ? "too_many_missed" : null;
  }
}

function isLate(slotAtMs: number, nowMs: number): boolean {
  return nowMs - slotAtMs > ON_TIME_MS;
}

/** The slots that are due, the oldest first: all of them, or so many that those to be made up are not among the first. */
function slotsUntil(schedule: Schedule, nowMs: number): readonly number[] {
  const most = MOST_SLOTS + schedule.catchUp.slots;
  const slots: number[] = [];
  let slotAtMs = schedule.nextSlotAtMs;
  while (slotAtMs !== null && slotAtMs <= nowMs && slots.length < most) {
    slots.push(slotAtMs);
    slotAtMs = slotAfter(schedule, slotAtMs);
  }
  return slots;
}

function slotAfter({ timing }: Schedule, slotAtMs: number): number | null {
  return timing.cron === null ? null : nextSlot(timing, slotAtMs);
}
