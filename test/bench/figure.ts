import type { Row } from "./row.ts";
import type { Stage } from "./stage.ts";

/** A kind of figure: it plays its trials on the stage and gives the lines of the report. One file of `figures/` each. */
export interface Figure {
  /** By which it is chosen on the command line. */
  readonly name: string;
  /** What it measures, in a sentence for the report. */
  readonly measures: string;
  run(stage: Stage, say: (line: string) => void): Promise<readonly Row[]>;
}
