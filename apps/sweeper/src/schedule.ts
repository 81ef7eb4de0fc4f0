import type { Sweep } from "./sweep.ts";
import { passDeadlines } from "./sweeps/pass-deadlines.ts";
import { recoverForsaken } from "./sweeps/recover-forsaken.ts";
import { recoverWedged } from "./sweeps/recover-wedged.ts";
import { repairCascade } from "./sweeps/repair-cascade.ts";
import { repairWakeUps } from "./sweeps/repair-wake-ups.ts";
import { retryDue } from "./sweeps/retry-due.ts";
import { settleCancelling } from "./sweeps/settle-cancelling.ts";
import { wakeLookUps } from "./sweeps/wake-look-ups.ts";

/** All sweeps, in the order of a pass: what frees runs comes before what wakes them. */
export const SWEEPS: readonly Sweep[] = [
  recoverForsaken,
  recoverWedged,
  passDeadlines,
  retryDue,
  repairCascade,
  settleCancelling,
  wakeLookUps,
  repairWakeUps,
];
