// Which partitions the histories should have. A history is divided by ranges of run ids, which are ordered by time, so that
// a whole range can be dropped when retention has removed its last run: a table that rows are only deleted from stays as
// large as it was.
//
// Every partition costs each statement that touches all of them, so there are few: a partition is about as wide as runs
// are kept. Kept for a month, the histories have the month that was, this one, the next, and for some days the one before.

/** A partition of a history, as the catalog has it. Instants in milliseconds since the epoch. */
export interface HistoryPart {
  readonly history: string;
  readonly name: string;
  readonly isDefault: boolean;
  /** Null: from the beginning. Of the default partition both are null. */
  readonly lowerMs: number | null;
  readonly upperMs: number | null;
  readonly sizeBytes: number;
}

/** All that a plan is made from. */
export interface PartitionFacts {
  readonly nowMs: number;
  /** The longest that any tenant keeps a run after its end. */
  readonly keptDays: number;
  readonly parts: readonly HistoryPart[];
}

/** A time for whose runs a history has no partition yet. */
export interface MissingRange {
  readonly history: string;
  readonly lowerMs: number;
  readonly upperMs: number;
}

/** From `days` on, partitions are `months` wide. */
const WIDTHS = [
  { days: 181, months: 12 },
  { days: 61, months: 3 },
  { days: 0, months: 1 },
] as const;

/** How many months a new partition is wide, where runs are kept for so long. */
export function widthOf(keptDays: number): number {
  return WIDTHS.find(({ days }) => keptDays >= days)?.months ?? 1;
}

/** The beginning of the calendar's period (UTC) of so many months that a moment is in, and of those after it. */
export function periodStart(atMs: number, months: number, later = 0): number {
  const at = new Date(atMs);
  const first = Math.floor(at.getUTCMonth() / months) * months;
  return Date.UTC(at.getUTCFullYear(), first + later * months, 1);
}

/** What each history lacks to have this period and the next: made a whole period ahead, it is there when the first row comes. */
export function missingRanges({ nowMs, keptDays, parts }: PartitionFacts): readonly MissingRange[] {
  const months = widthOf(keptDays);
  const untilMs = periodStart(nowMs, months, 2);
  return [...new Set(parts.map(({ history }) => history))].flatMap((history) => {
    const ranges: MissingRange[] = [];
    let lowerMs = Math.max(coveredUntil(parts, history), periodStart(nowMs, months));
    while (lowerMs < untilMs) {
      // Where partitions had another width, the first is cut short, so that the next begins with a period.
      const upperMs = periodStart(lowerMs, months, 1);
      ranges.push({ history, lowerMs, upperMs });
      lowerMs = upperMs;
    }
    return ranges;
  });
}

/** Partitions of the past in which nothing is left, and of which the server has given back the last page. */
export function emptiedParts({ nowMs, parts }: PartitionFacts): readonly HistoryPart[] {
  return parts.filter(({ upperMs, sizeBytes }) => upperMs !== null && upperMs <= nowMs && sizeBytes === 0);
}

/** Until when all histories have partitions, in milliseconds since the epoch. */
export function coveredByAll(parts: readonly HistoryPart[]): number {
  const histories = new Set(parts.map(({ history }) => history));
  return Math.min(...[...histories].map((history) => coveredUntil(parts, history)));
}

function coveredUntil(parts: readonly HistoryPart[], history: string): number {
  const uppers = parts.flatMap((part) => (part.history === history && part.upperMs !== null ? [part.upperMs] : []));
  return Math.max(Number.NEGATIVE_INFINITY, ...uppers);
}
