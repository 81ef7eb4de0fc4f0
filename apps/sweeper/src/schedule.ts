import type { Sweep } from "./sweep.ts";
import { passDeadlines } from "./sweeps/pass-deadlines.ts";
import { recoverForsaken } from "./sweeps/recover-forsaken.ts";
import { recoverWedged } from "./sweeps/recover-wedged.ts";
import { remindApprovers } from "./sweeps/remind-approvers.ts";
import { repairCascade } from "./sweeps/repair-cascade.ts";
import { repairWakeUps } from "./sweeps/repair-wake-ups.ts";
import { retryDue } from "./sweeps/retry-due.ts";
import { settleCancelling } from "./sweeps/settle-cancelling.ts";
import { wakeLookUps } from "./sweeps/wake-look-ups.ts";

/** The sweeps that move runs, or remind of them, in the order of a pass: who is late is not reminded any more. */
export const MOVING: readonly Sweep[] = [
  recoverForsaken,
  recoverWedged,
  passDeadlines,
  retryDue,
  repairCascade,
  settleCancelling,
  remindApprovers,
];

/** The sweeps that only wake workers: they ask the queue, which may be away, so nothing that moves a run waits for them. */
export const WAKING: readonly Sweep[] = [wakeLookUps, repairWakeUps];
