import { setTimeout as sleep } from "node:timers/promises";
import type { Contestant } from "./contestant.ts";
import type { Arena } from "./stage.ts";

/** How far a trial had come at one moment, and what it had used by then. */
export interface Point {
  readonly steps: number;
  readonly seconds: number;
  readonly walBytes: number;
  readonly statements: number;
}

/** What a step costs in one part of a trial. */
export type StepCost = Omit<Point, "steps">;

const POLL_MS = 40;
const LIMIT_MS = 300_000;

/**
 * Begins, and watches until so many more steps are stored. The first point is that before the beginning. Each point costs
 * one statement, which is left out of the points.
 *
 * @throws {Error} it takes too long.
 */
export async function watchProgress(
  { admin }: Arena,
  { sql, name }: Contestant,
  { steps, begin }: { readonly steps: number; readonly begin: () => Promise<void> },
): Promise<readonly Point[]> {
  const text = pointStatement(sql.progress);
  const read = async (): Promise<Point> => {
    const { rows } = await admin.query<Point>(text);
    if (rows[0] === undefined) throw new Error("There is no progress to be read");
    return rows[0];
  };
  const first = await read();
  const points: Point[] = [since(first, first)];
  const deadlineMs = performance.now() + LIMIT_MS;
  await begin();
  for (;;) {
    const point = since(await read(), first);
    points.push({ ...point, statements: point.statements - points.length });
    if (point.steps >= steps) return points;
    if (performance.now() > deadlineMs) throw new Error(`The ${name} did not end its runs`);
    await sleep(POLL_MS);
  }
}

function since(point: Point, first: Point): Point {
  return {
    steps: point.steps - first.steps,
    seconds: point.seconds - first.seconds,
    walBytes: point.walBytes - first.walBytes,
    statements: point.statements - first.statements,
  };
}

function pointStatement(progress: string): string {
  return `
select (${progress})::float8 as steps,
  extract(epoch from clock_timestamp())::float8 as seconds,
  (pg_current_wal_insert_lsn() - '0/0')::float8 as "walBytes",
  (select coalesce(sum(s.calls), 0)::float8 from pg_stat_statements s
   where s.dbid = (select oid from pg_database where datname = current_database())) as statements`;
}

/**
 * What a step costs between two moments of a trial, which are given in steps.
 *
 * @throws {RangeError} the points do not reach over them.
 */
export function costBetween(points: readonly Point[], from: number, to: number): StepCost {
  const [begin, end] = [pointAt(points, from), pointAt(points, to)];
  const cost = (key: keyof StepCost) => (end[key] - begin[key]) / (to - from);
  return { seconds: cost("seconds"), walBytes: cost("walBytes"), statements: cost("statements") };
}

/** The moment at which so many steps were stored: on the line between the two points around it. */
function pointAt(points: readonly Point[], steps: number): Point {
  const next = points.findIndex((point) => point.steps >= steps);
  const [before, after] = [points[Math.max(0, next - 1)], points[next]];
  if (before === undefined || after === undefined) throw new RangeError(`No point is as far as ${steps} steps`);
  const share = after.steps === before.steps ? 0 : (steps - before.steps) / (after.steps - before.steps);
  const between = (key: keyof Point) => before[key] + share * (after[key] - before[key]);
  return {
    steps,
    seconds: between("seconds"),
    walBytes: between("walBytes"),
    statements: between("statements"),
  };
}
