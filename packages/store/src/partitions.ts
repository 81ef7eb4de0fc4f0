import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Store } from "./db.ts";
import {
  coveredByAll,
  emptiedParts,
  type HistoryPart,
  type MissingRange,
  missingRanges,
  type PartitionFacts,
} from "./partitions-plan.ts";

/** What is to be done to the histories' partitions. */
export interface PartitionPlan {
  readonly make: readonly PlannedPart[];
  readonly drop: readonly Pick<HistoryPart, "history" | "name">[];
}

interface PlannedPart extends MissingRange {
  readonly name: string;
  /** How large the default partition is, which is looked through while nobody else can use it. */
  readonly defaultBytes: number;
}

/** What was done, by the partitions' names. */
export interface PartitionsKept {
  readonly made: readonly string[];
  readonly dropped: readonly string[];
  /** What stopped it: the rest is for the next call. */
  readonly stopped: Error | null;
}

/** Who sends the statements: a store's pool, or a connection of whoever migrates. */
type Sender = Pick<pg.Client, "query">;

/** Looks for what `keepPartitions` would do. Reads the catalog, and of the tables only what it needs for what is due. */
export async function planPartitions(store: Store): Promise<PartitionPlan> {
  return planOf(store.pool);
}

/** For how long from now all histories have partitions, in milliseconds; after that runs go to the default ones. */
export async function findCoveredFor(store: Store): Promise<number> {
  const { nowMs, parts } = await factsOf(store.pool);
  return coveredByAll(parts) - nowMs;
}

/**
 * Makes partitions for this period and the next, and drops those of the past that are empty. Each is judged anew by the
 * statement that does it, so any number of processes may call this. It never waits long for a lock, since others would
 * wait behind it; what it did not get is found again.
 */
export async function keepPartitions(store: Store): Promise<PartitionsKept> {
  const { make, drop } = await planOf(store.pool);
  const made: string[] = [];
  const dropped: string[] = [];
  try {
    for (const range of make) {
      if (range.defaultBytes > DEFAULT_LIMIT_BYTES) return { made, dropped, stopped: tooLarge(range) };
      if (await makePartition(store.pool, range)) made.push(range.name);
    }
    for (const part of drop) if (await dropPartition(store.pool, part)) dropped.push(part.name);
  } catch (error) {
    const stopped = asStop(error);
    if (stopped === null) throw error;
    return { made, dropped, stopped };
  }
  return { made, dropped, stopped: null };
}

/** Looked through in some milliseconds. Only a fleet whose partitions had run out for long has a larger one. */
const DEFAULT_LIMIT_BYTES = 32 * 1024 * 1024;

const MIGRATION_TRIES = 20;
const MIGRATION_PAUSE_MS = 250;

/** Makes the partitions that are missing, for whoever has just migrated; waits for others between its tries. */
export async function makePartitions(client: Sender): Promise<void> {
  const { make } = await planOf(client);
  for (const range of make) {
    for (let tries = 1; ; tries += 1) {
      try {
        await makePartition(client, range);
        break;
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (tries >= MIGRATION_TRIES) {
          throw new Error(`${range.history} is in use by a statement that does not end: migrate again after it.`, {
            cause: error,
          });
        }
        await sleep(MIGRATION_PAUSE_MS);
      }
    }
  }
}

async function planOf(sender: Sender): Promise<PartitionPlan> {
  const facts = await factsOf(sender);
  const make: PlannedPart[] = [];
  for (const range of missingRanges(facts)) {
    const rest = facts.parts.find(({ history, isDefault }) => history === range.history && isDefault);
    // Rows that came before their partition stay where they are, until retention removes them.
    if (rest !== undefined && (await hasRows(sender, rest.name, range))) continue;
    make.push({ ...range, name: nameOf(range), defaultBytes: rest?.sizeBytes ?? 0 });
  }
  const drop: HistoryPart[] = [];
  // While a run of that time is there, it may still add to its history.
  for (const part of emptiedParts(facts)) if (!(await hasRuns(sender, part))) drop.push(part);
  return { make, drop };
}

interface FactsRow {
  readonly now_ms: number;
  readonly kept_days: number | null;
  readonly parts: readonly {
    readonly history: string;
    readonly name: string;
    readonly bound: string;
    readonly bytes: number;
  }[];
}

const DEFAULT_KEPT_DAYS = 30;

async function factsOf(sender: Sender): Promise<PartitionFacts> {
  const { rows } = await sender.query<FactsRow>(FACTS);
  const [row] = rows;
  if (row === undefined) throw new Error("the statement about partitions gives one row");
  return { nowMs: row.now_ms, keptDays: row.kept_days ?? DEFAULT_KEPT_DAYS, parts: row.parts.map(partOf) };
}

function partOf({ history, name, bound, bytes }: FactsRow["parts"][number]): HistoryPart {
  const [lower, upper] = /^FOR VALUES FROM \((.+)\) TO \((.+)\)$/.exec(bound)?.slice(1) ?? [];
  return {
    history,
    name,
    isDefault: bound === "DEFAULT",
    lowerMs: instantIn(lower),
    upperMs: instantIn(upper),
    sizeBytes: bytes,
  };
}

/** The time in a bound, which is the smallest id of its moment; null: it has none. */
function instantIn(bound: string | undefined): number | null {
  const hex = /^'([0-9a-f]{8})-([0-9a-f]{4})-/.exec(bound ?? "");
  return hex === null ? null : Number.parseInt(`${hex[1]}${hex[2]}`, 16);
}

/** By the convention of `holdpoint.make_partition`. */
function nameOf({ history, lowerMs }: MissingRange): string {
  return `${history}_${new Date(lowerMs).toISOString().slice(0, 7).replace("-", "_")}`;
}

async function makePartition(sender: Sender, { history, lowerMs, upperMs }: MissingRange): Promise<boolean> {
  const values = [history, new Date(lowerMs), new Date(upperMs)];
  const { rows } = await sender.query<{ done: boolean }>(MAKE, values);
  return rows[0]?.done === true;
}

async function dropPartition(sender: Sender, { history, name }: PartitionPlan["drop"][number]): Promise<boolean> {
  const { rows } = await sender.query<{ done: boolean }>(DROP, [history, name]);
  return rows[0]?.done === true;
}

async function hasRows(sender: Sender, table: string, { lowerMs, upperMs }: MissingRange): Promise<boolean> {
  const text = `select exists (select from holdpoint.${pg.escapeIdentifier(table)}
    where run_id >= holdpoint.first_id($1) and run_id < holdpoint.first_id($2)) as found`;
  const { rows } = await sender.query<{ found: boolean }>(text, [new Date(lowerMs), new Date(upperMs)]);
  return rows[0]?.found === true;
}

async function hasRuns(sender: Sender, { lowerMs, upperMs }: HistoryPart): Promise<boolean> {
  const values = [new Date(lowerMs ?? 0), new Date(upperMs ?? 0)];
  const { rows } = await sender.query<{ found: boolean }>(HAS_RUNS, values);
  return rows[0]?.found === true;
}

const NOT_GRANTED_IN_TIME = "55P03";
const DEADLOCK = "40P01";
const NOT_ALLOWED = "42501";
/** A row of that time has come to the default partition since it was looked at. */
const ROW_IN_DEFAULT = "23514";

function isBusy(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === NOT_GRANTED_IN_TIME || error.code === DEADLOCK);
}

function tooLarge({ history, defaultBytes }: PlannedPart): Error {
  const size = `${Math.round(defaultBytes / 1024 / 1024)} MB`;
  return new Error(`the default partition of ${history} has ${size}: run holdpoint migrate at a quiet time`);
}

/** What is no failure of this program; null if it is one. */
function asStop(error: unknown): Error | null {
  if (!(error instanceof pg.DatabaseError)) return null;
  if (error.code === NOT_ALLOWED) {
    const text =
      "only the owner of the tables makes and drops partitions: run holdpoint migrate once a period, as that role";
    return new Error(`${text} (${error.message})`, { cause: error });
  }
  if (isBusy(error)) return new Error("the histories are in use; it is tried again later", { cause: error });
  return error.code === ROW_IN_DEFAULT ? new Error("a run came before its partition", { cause: error }) : null;
}

// Names of tables cannot be parameters, and these statements are rare: none is sent named.

const FACTS = `
select (extract(epoch from holdpoint.clock()) * 1000)::float8 as now_ms,
  (select max(greatest(p.succeeded_days, p.partial_days, p.blocked_days, p.failed_days, p.cancelled_days))
   from holdpoint.retention p) as kept_days,
  (select jsonb_agg(jsonb_build_object('history', h.relname, 'name', c.relname,
     'bound', pg_get_expr(c.relpartbound, c.oid), 'bytes', pg_relation_size(c.oid)) order by h.relname, c.relname)
   from pg_class h join pg_inherits i on i.inhparent = h.oid join pg_class c on c.oid = i.inhrelid
   where h.relnamespace = 'holdpoint'::regnamespace and h.relkind = 'p') as parts`;

const MAKE = "select holdpoint.make_partition($1, $2, $3) as done";
const DROP = "select holdpoint.drop_partition($1, $2) as done";

const HAS_RUNS = `select exists (select from holdpoint.runs
  where id >= holdpoint.first_id($1) and id < holdpoint.first_id($2)) as found`;
