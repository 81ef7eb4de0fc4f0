import type { Takeover } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { showLoss } from "./restart-plan.ts";

/** What taking a run from its worker would do, or has done. */
export function showTakeover({ applied, workerId, forecast, status }: Takeover, view: View): string {
  const { colours } = view.out;
  const from = workerId === null ? "its worker" : workerId;
  const head = applied
    ? `${colours.good("Taken")} from ${from}; the run is ${status.replaceAll("_", " ")} now.\n`
    : `${colours.waiting("Nothing was done.")} Taking it from ${from} would do this; --apply does it.\n`;
  return `${head}${showLoss(forecast, view)}`;
}
