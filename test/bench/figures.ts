import type { Figure } from "./figure.ts";
import { fleet } from "./figures/fleet.ts";
import { held } from "./figures/held.ts";
import { latency } from "./figures/latency.ts";
import { millionHeld } from "./figures/million-held.ts";
import { runLength } from "./figures/run-length.ts";
import { shortRuns } from "./figures/short-runs.ts";
import { takeover } from "./figures/takeover.ts";
import { throughput } from "./figures/throughput.ts";

/** All figures, in the order of the report. */
export const FIGURES: readonly Figure[] = [
  throughput,
  shortRuns,
  runLength,
  fleet,
  latency,
  held,
  takeover,
  millionHeld,
];
