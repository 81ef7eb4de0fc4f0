import type { PlannedSweep, Sweep } from "./sweep.ts";
import { fireSchedules } from "./sweeps/fire-schedules.ts";
import { judgeSilentRuns } from "./sweeps/judge-liveness.ts";
import { passDeadlines } from "./sweeps/pass-deadlines.ts";
import { recoverForsaken } from "./sweeps/recover-forsaken.ts";
import { recoverWedged } from "./sweeps/recover-wedged.ts";
import { remindApprovers } from "./sweeps/remind-approvers.ts";
import { removeExpired } from "./sweeps/remove-expired.ts";
import { removeLeftoversOfRuns } from "./sweeps/remove-leftovers.ts";
import { removePastRecords } from "./sweeps/remove-past.ts";
import { repairCascade } from "./sweeps/repair-cascade.ts";
import { repairWakeUps } from "./sweeps/repair-wake-ups.ts";
import { repeatWakeUps } from "./sweeps/repeat-wake-ups.ts";
import { resolveVanished } from "./sweeps/resolve-vanished.ts";
import { retryDue } from "./sweeps/retry-due.ts";
import { settleCancelling } from "./sweeps/settle-cancelling.ts";
import { startQueuedSlots } from "./sweeps/start-queued-slots.ts";
import { stopReplaced } from "./sweeps/stop-replaced.ts";
import { tellParents } from "./sweeps/tell-parents.ts";
import { wakeLookUps } from "./sweeps/wake-look-ups.ts";
import { watchLeases } from "./sweeps/watch-leases.ts";

const ORDERED: readonly PlannedSweep[] = [
  recoverForsaken,
  recoverWedged,
  passDeadlines,
  retryDue,
  repairCascade,
  tellParents,
  resolveVanished,
  settleCancelling,
  // What has ended comes first, so that a slot which waits for it can start.
  startQueuedSlots,
  fireSchedules,
  stopReplaced,
  remindApprovers,
];

/**
 * The sweeps that move runs, or remind of them, in the order of a pass: who is late is not reminded any more, and verdicts
 * are about what the others have left.
 */
export const MOVING: readonly Sweep[] = [...ORDERED, judgeSilentRuns];

/** Made again and again beside the passes, however long those take. */
export const WATCHING: Sweep = watchLeases;

/** The sweeps that only wake workers: they ask the queue, which may be away, so nothing that moves a run waits for them. */
export const WAKING: readonly Sweep[] = [wakeLookUps, repairWakeUps];

/** The sweeps that remove what nobody needs any more, and make room for what comes: nobody waits for them. */
export const TIDYING: readonly Sweep[] = [removeLeftoversOfRuns, removePastRecords, removeExpired];

/** What maintenance looks for, in the order in which it is done: removed is what nothing is to be done about any more. */
export const MAINTENANCE: readonly PlannedSweep[] = [
  ...ORDERED,
  repeatWakeUps,
  removeLeftoversOfRuns,
  removePastRecords,
  removeExpired,
];
