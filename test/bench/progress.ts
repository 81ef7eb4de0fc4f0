import { setTimeout as sleep } from "node:timers/promises";
import type { Contestant } from "./contestant.ts";
import type { Arena } from "./stage.ts";

/** How far the runs of a trial had come at one moment, and what had been used by then. */
export interface Point {
  /** Of all of them together. */
  readonly steps: number;
  /** Of the run that has the fewest, and of the one that has the most. */
  readonly least: number;
  readonly most: number;
  readonly seconds: number;
  readonly walBytes: number;
  readonly statements: number;
}

/** What a step costs in one part of a trial. */
export type StepCost = Pick<Point, "seconds" | "walBytes" | "statements">;

const POLL_MS = 40;
const LIMIT_MS = 300_000;

/** What is watched. */
export interface Watched {
  readonly runs: readonly string[];
  /** How many steps they make, all together. */
  readonly steps: number;
  begin(): Promise<void>;
}

/**
 * Begins, and watches until so many steps are stored. The first point is that before the beginning. Each point costs
 * one statement, which is left out of the points.
 *
 * @throws {Error} it takes too long.
 */
export async function watchProgress(
  { admin }: Arena,
  { sql, name }: Contestant,
  { runs, steps, begin }: Watched,
): Promise<readonly Point[]> {
  const text = pointStatement(sql.progress);
  const read = async (): Promise<Point> => {
    const { rows } = await admin.query<Point>(text, [runs]);
    if (rows[0] === undefined) throw new Error("There is no progress to be read");
    return rows[0];
  };
  const points: Point[] = [await read()];
  const deadlineMs = performance.now() + LIMIT_MS;
  await begin();
  for (;;) {
    const point = await read();
    points.push({ ...point, statements: point.statements - points.length });
    if (point.steps >= steps) return points;
    if (performance.now() > deadlineMs) throw new Error(`The ${name} did not end its runs`);
    await sleep(POLL_MS);
  }
}

function pointStatement(progress: string): string {
  return `
select p.*,
  extract(epoch from clock_timestamp())::float8 as seconds,
  (pg_current_wal_insert_lsn() - '0/0')::float8 as "walBytes",
  (select coalesce(sum(s.calls), 0)::float8 from pg_stat_statements(false) s
   where s.dbid = (select oid from pg_database where datname = current_database())) as statements
from (${progress}) p`;
}

/** Which steps are compared, of runs that are played at once. */
export interface Parts {
  /** The early part begins when every run has as many steps. */
  readonly from: number;
  /** The late part ends before any run has more. */
  readonly to: number;
  /** How many steps each part has, of all runs together. */
  readonly steps: number;
}

/**
 * What a step costs early and late in the runs. In both parts all runs are at work: none has still to begin, and none has
 * ended.
 *
 * @throws {RangeError} the points do not hold two parts like that, one after the other.
 */
export function costsOf(points: readonly Point[], { from, to, steps }: Parts): { early: StepCost; late: StepCost } {
  const first = points.find(({ least }) => least >= from);
  const last = points.findLast(({ most }) => most <= to);
  if (first === undefined || last === undefined || first.steps + steps > last.steps - steps)
    throw new RangeError(`The runs are not all between ${from} and ${to} steps for long enough`);
  return {
    early: costBetween(points, first.steps, first.steps + steps),
    late: costBetween(points, last.steps - steps, last.steps),
  };
}

function costBetween(points: readonly Point[], from: number, to: number): StepCost {
  const [begin, end] = [pointAt(points, from), pointAt(points, to)];
  const cost = (key: keyof StepCost) => (end[key] - begin[key]) / (to - from);
  return { seconds: cost("seconds"), walBytes: cost("walBytes"), statements: cost("statements") };
}

/** The moment at which so many steps were stored: on the line between the two points around it. */
function pointAt(points: readonly Point[], steps: number): StepCost {
  const next = points.findIndex((point) => point.steps >= steps);
  const [before, after] = [points[Math.max(0, next - 1)], points[next]];
  if (before === undefined || after === undefined) throw new RangeError(`No point is as far as ${steps} steps`);
  const share = after.steps === before.steps ? 0 : (steps - before.steps) / (after.steps - before.steps);
  const between = (key: keyof StepCost) => before[key] + share * (after[key] - before[key]);
  return { seconds: between("seconds"), walBytes: between("walBytes"), statements: between("statements") };
}
