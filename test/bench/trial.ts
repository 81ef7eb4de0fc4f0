import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Contestant } from "./contestant.ts";
import { type Counters, readCounters, subtract } from "./counters.ts";
import type { QueueKind } from "./settings.ts";
import type { Arena, Stage } from "./stage.ts";
import { readStatements, resetStatements } from "./statements.ts";
import { stepsOf, type Work } from "./work.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/** What is played: so many runs of one work, all submitted before the first wake-up. */
export interface TrialOptions {
  readonly queue: QueueKind;
  readonly work: Work;
  readonly runs: number;
  /** Runs that one worker process works on at once. */
  readonly slots: number;
  readonly processes?: number;
  /** Runs before the measured ones, until the processes and the servers are warm. */
  readonly warmUpRuns: number;
  /** The name of its profile, where profiles are made. */
  readonly profile?: string;
}

/** What was measured between the first wake-up and the end of the last run. */
export interface Trial {
  readonly runs: number;
  readonly steps: number;
  readonly seconds: number;
  /** Steps of the second half of the time to those of the first: 1 where all was warm when it began. */
  readonly steadiness: number;
  readonly used: Counters;
}

/** A longer trial is stuck. */
const LIMIT_MS = 300_000;
/** Each poll reads all runs: seldom enough to be nothing beside the work, and soon at once for what ends at once. */
const POLLS_MS = { first: 5, growth: 1.5, last: 250 };
/** Statements of ours between the readings, besides the polls: the clock. */
const BETWEEN = 1;

/** Plays one contestant on a database of its own. */
export async function playTrial(stage: Stage, contestant: Contestant, options: TrialOptions): Promise<Trial> {
  await using cast = await openCast(stage, contestant, options);
  const { arena, client, workers } = cast;
  await warmUp(stage, contestant, { cast, runs: options.warmUpRuns });
  const stepsBefore = await readNumber(arena, contestant.sql.steps, "steps");
  const submitted = await client.submit(options.runs);
  const profiled = stage.settings.profileDir !== null && options.profile !== undefined && contestant.name === "product";
  if (profiled) {
    await resetStatements(stage.servers.admin);
    await Promise.all(workers.map((worker) => worker.startProfile()));
  }
  const before = await readCounters(stage.servers, arena, workers);
  const from = await readNumber(arena, "select extract(epoch from clock_timestamp())::float8 as seconds", "seconds");
  await submitted.announce();
  const polls = await untilAllEnded(arena, contestant, workers);
  const after = await readCounters(stage.servers, arena, workers);
  if (profiled) await writeProfile(stage, cast, `${options.profile}-${options.queue}`);
  const to = await readNumber(arena, contestant.sql.endedAt, "seconds");
  const steps = (await readNumber(arena, contestant.sql.steps, "steps")) - stepsBefore;
  const expected = options.runs * stepsOf(options.work);
  if (steps !== expected) throw new Error(`The ${contestant.name} stored ${steps} steps, not ${expected}`);
  const steadiness = await readSteadiness(arena, contestant, { from, to });
  return { runs: options.runs, steps, seconds: to - from, steadiness, used: subtract(after, before, polls + BETWEEN) };
}

/**
 * Plays runs until the processes and the servers are warm, and makes the database one that has worked for some time.
 *
 * The checkpoint comes first: after it the first change of a page, be it a hint alone, puts the whole page into the log.
 * That is done with when the measured part begins, which no step has caused. The planner learns what the tables hold, as
 * autovacuum, which is off, would have told it.
 */
export async function warmUp(
  stage: Stage,
  contestant: Contestant,
  { cast: { arena, client, workers }, runs }: { readonly cast: Cast; readonly runs: number },
): Promise<void> {
  await stage.servers.admin.query("checkpoint");
  const submitted = await client.submit(runs);
  await submitted.announce();
  await untilAllEnded(arena, contestant, workers);
  await arena.admin.query("analyze");
}

/** All that takes part in a trial. */
export interface Cast extends AsyncDisposable {
  readonly arena: Arena;
  readonly client: Client;
  readonly workers: readonly WorkerProcess[];
}

/** Opens a database for the contestant, and starts its workers. */
export async function openCast(
  stage: Stage,
  contestant: Contestant,
  { queue, work, slots, processes = 1 }: Pick<TrialOptions, "queue" | "work" | "slots" | "processes">,
): Promise<Cast> {
  const stack = new AsyncDisposableStack();
  try {
    const arena = stack.use(await stage.openArena(contestant.schema, queue));
    const client = stack.use(await contestant.openClient(arena));
    const start = { url: arena.url, queue: arena.queue, slots, work };
    const workers: WorkerProcess[] = [];
    for (let index = 0; index < processes; index += 1) {
      workers.push(stack.use(await startWorker(contestant.program, start)));
    }
    return { arena, client, workers, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/**
 * Waits until no run of the arena is left to be done; gives how many statements that took.
 *
 * @throws {Error} it takes too long, or one of the workers has ended.
 */
export async function untilAllEnded(
  { admin }: Arena,
  { name, sql }: Contestant,
  workers: readonly WorkerProcess[],
): Promise<number> {
  const deadlineMs = performance.now() + LIMIT_MS;
  let pauseMs = POLLS_MS.first;
  for (let polls = 1; ; polls += 1) {
    const { rows } = await admin.query<{ waits: boolean }>(sql.waits);
    if (rows[0]?.waits === false) return polls;
    if (workers.some((worker) => worker.hasEnded())) throw new Error(`A worker of the ${name} has ended`);
    if (performance.now() > deadlineMs) throw new Error(`The ${name} did not end its runs`);
    await sleep(pauseMs);
    pauseMs = Math.min(POLLS_MS.last, pauseMs * POLLS_MS.growth);
  }
}

async function readSteadiness(
  { admin }: Arena,
  { sql }: Contestant,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number> {
  const { rows } = await admin.query<{ first: number; second: number }>(
    `select count(*) filter (where seconds <= $2)::int as first, count(*) filter (where seconds > $2)::int as second
     from (${sql.stepTimes}) s where seconds > $1`,
    [from, (from + to) / 2],
  );
  if (rows[0] === undefined) throw new Error("There are no steps");
  return rows[0].second / rows[0].first;
}

async function readNumber<Key extends string>({ admin }: Arena, text: string, key: Key): Promise<number> {
  const { rows } = await admin.query<Record<Key, number>>(text);
  const value = rows[0]?.[key];
  if (value === undefined) throw new Error(`"${text}" gives no ${key}`);
  return value;
}

async function writeProfile(stage: Stage, { arena, workers }: Cast, name: string): Promise<void> {
  const folder = stage.settings.profileDir ?? ".";
  await mkdir(folder, { recursive: true });
  await Promise.all(
    workers.map((worker, index) => worker.stopProfile(join(folder, `${name}-worker-${index + 1}.cpuprofile`))),
  );
  await writeFile(join(folder, `${name}-statements.txt`), await readStatements(stage.servers.admin, arena.database));
}
