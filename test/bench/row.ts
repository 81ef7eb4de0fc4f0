import { median } from "./arithmetic.ts";
import type { QueueKind } from "./settings.ts";

/** A bound of a figure or of its ratio to the ceiling. */
export interface Bound {
  readonly of: "value" | "ratio";
  readonly is: "at least" | "at most";
  readonly than: number;
}

/** What a figure has to reach: all of its bounds, or one of them. */
export type Goal = { readonly all: readonly Bound[] } | { readonly any: readonly Bound[] };

/** One line of the report. */
export interface Row {
  readonly figure: string;
  /** Null where no queue takes part. */
  readonly queue: QueueKind | null;
  readonly value: number;
  readonly unit: string;
  /** The straw man's value in the same rounds; null where there is none to compare with. */
  readonly ceiling: number | null;
  /** Value to ceiling. */
  readonly ratio: number | null;
  readonly goal: Goal | null;
  /** Null without a goal. */
  readonly met: boolean | null;
}

/** What one round has measured. */
export interface Sample {
  readonly value: number;
  readonly ceiling: number | null;
}

/** What a figure is, before it is measured. */
export type Measure = Pick<Row, "figure" | "queue" | "unit"> & { readonly goal?: Goal };

/** Makes the line of a figure of what its rounds have measured: medians, the ratio's own among them. */
export function rowOf({ figure, queue, unit, goal }: Measure, samples: readonly Sample[]): Row {
  const value = median(samples.map((sample) => sample.value));
  const compared = samples.flatMap((sample) =>
    sample.ceiling === null ? [] : [{ ...sample, ceiling: sample.ceiling }],
  );
  const whole = compared.length === samples.length;
  const ceiling = whole ? median(compared.map((sample) => sample.ceiling)) : null;
  const ratio = whole ? median(compared.map((sample) => sample.value / sample.ceiling)) : null;
  const row = { figure, queue, value, unit, ceiling, ratio };
  return { ...row, goal: goal ?? null, met: goal === undefined ? null : isMet(goal, row) };
}

function isMet(goal: Goal, row: Pick<Row, "value" | "ratio">): boolean {
  const holds = ({ of, is, than }: Bound): boolean => {
    const measured = row[of];
    if (measured === null) return false;
    return is === "at least" ? measured >= than : measured <= than;
  };
  return "all" in goal ? goal.all.every(holds) : goal.any.some(holds);
}

/** A goal of one bound. */
export function goal(of: Bound["of"], is: Bound["is"], than: number): Goal {
  return { all: [{ of, is, than }] };
}

/** A goal in words, as the report has it. */
export function describeGoal(wanted: Goal, unit: string): string {
  const bounds = "all" in wanted ? wanted.all : wanted.any;
  const texts = bounds.map(({ of, is, than }) => {
    const sign = is === "at least" ? "≥" : "≤";
    return of === "ratio" ? `ratio ${sign} ${than}` : `${sign} ${than} ${unit}`;
  });
  return texts.join("all" in wanted ? " and " : " or ");
}
