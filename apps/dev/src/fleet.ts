// The whole fleet on this machine: Postgres, payment sandbox, refund desk, api, two workers, sweeper.
// Owns: what starts in which order, and what stops in which. Does not own: what any of it does.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startPostgres } from "@holdpoint/embedded";
import { type FleetDatabase, fleetDatabase, prepareDatabase, takeFleetLock } from "./fleet-database.ts";
import { type Part, type PartPlan, runTask, startPart } from "./part.ts";

export interface FleetOptions {
  /** Where data and logs are kept. */
  readonly folder: string;
  /** The api's port; 0 picks a free one. */
  readonly apiPort: number;
  /** Who may call the api: `token=user:role,role;…`. */
  readonly tokens: string;
  /** The queue's Redis; null: the queue is in Postgres. */
  readonly redisUrl: string | null;
  /** Settings that differ from the defaults, such as shorter leases. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Hears what has been done. */
  readonly report: (line: string) => void;
  /** Ends the start. */
  readonly signal: AbortSignal;
}

/** A fleet that is ready. */
export interface Fleet {
  readonly apiUrl: string;
  readonly sandboxUrl: string;
  readonly postgresPort: number;
  readonly databaseUrl: string;
  readonly logs: string;
  readonly api: Part;
  readonly sandbox: Part;
  readonly sweeper: Part;
  readonly workers: readonly Part[];
  /** Drains and stops all of it: workers, sweeper, api, sandbox, Postgres last. */
  stop(): Promise<void>;
  /** SIGKILL for every part, so that a stop that is under way is over at once. Postgres is still stopped in order. */
  force(): void;
}

const WORKERS: readonly string[] = ["worker-1", "worker-2"];
/** Who stops after whom; Postgres is last. */
const STOP_ORDER: readonly (readonly string[])[] = [WORKERS, ["sweeper"], ["api"], ["sandbox"]];
const AGENTS = "apps/refund-desk/src/worker-agents.ts";
const WORKER_ARGS = ["--agents", AGENTS, "--processes", "1", "--slots", "4"];
const STOP_LIMIT_MS = 20_000;
const DRAIN_MS = 10_000;
/** Two workers with their processes, api and sweeper, each with pools, and who looks on. */
const POSTGRES_SETTINGS = { max_connections: "200" };
const COMPILE_CACHE = fileURLToPath(new URL("../../../.holdpoint/compile-cache", import.meta.url));

/**
 * Starts all parts and waits until each is ready. What was started is stopped again if one of them fails.
 *
 * @throws {PartError} a part failed: its name and the last lines of its log.
 * @throws {FleetRunsError} the fleet of this folder runs already; it is left alone.
 */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { folder, redisUrl, report, signal } = options;
  const logs = join(folder, "logs");
  mkdirSync(logs, { recursive: true });
  const started: Part[] = [];
  await using stack = new AsyncDisposableStack();
  const { postgres, lock } = await openPostgres(folder, stack);
  stack.defer(() => stopInOrder(started, report));
  const place: Place = { options, database: fleetDatabase(postgres.url), logs };
  const start = async (plan: StartPlan): Promise<Part> => {
    const part = await startPart(planOf(plan, place), signal);
    started.push(part);
    return part;
  };

  const [sandbox] = await together([
    openShop(place, start),
    prepareDatabase(postgres.url, { database: place.database, redisUrl }),
  ]);
  report(`Postgres ready on port ${postgres.port}, schema and queue up to date`);
  report("payment sandbox and the shop's orders ready");
  const sandboxUrl = urlOf(sandbox);
  const worker = { entry: "apps/worker/src/main.ts", readyEvent: "worker.started", sandboxUrl, args: WORKER_ARGS };
  const [api, sweeper, workers] = await together([
    start({ name: "api", entry: "apps/api/src/main.ts", readyEvent: "api.listening" }),
    start({ name: "sweeper", entry: "apps/sweeper/src/main.ts", readyEvent: "sweeper.started" }),
    together(WORKERS.map((name) => start({ ...worker, name }))),
  ]);
  report("api, sweeper and two workers ready");
  const apiUrl = urlOf(api);
  await lock.announce(apiUrl);
  const running = stack.move();
  return {
    apiUrl,
    sandboxUrl,
    postgresPort: postgres.port,
    databaseUrl: place.database.url,
    logs,
    api,
    sandbox,
    sweeper,
    workers,
    stop: () => running.disposeAsync(),
    force: () => {
      for (const part of started) if (part.isAlive()) part.kill();
    },
  };
}

interface StartPlan extends Omit<PartPlan, "env" | "logFile"> {
  readonly sandboxUrl?: string;
}

interface Place {
  readonly options: FleetOptions;
  readonly database: FleetDatabase;
  readonly logs: string;
}

async function openPostgres(folder: string, stack: AsyncDisposableStack) {
  const postgres = await startPostgres({ dataDir: join(folder, "postgres"), settings: POSTGRES_SETTINGS });
  const lock = await takeFleetLock(postgres.url); // before the stop is deferred: another fleet's server is not ours to stop
  stack.defer(() => postgres.stop());
  stack.use(lock);
  return { postgres, lock };
}

/** The outside world of the refund desk: its orders, and who pays. */
async function openShop(place: Place, start: (plan: StartPlan) => Promise<Part>): Promise<Part> {
  const args = ["--data", join(place.options.folder, "sandbox.jsonl")];
  const readyEvent = "sandbox.listening";
  const sandbox = await start({ name: "sandbox", entry: "apps/refund-desk/src/sandbox/main.ts", readyEvent, args });
  const setup = { name: "refund-desk-setup", entry: "apps/refund-desk/src/main-setup.ts", readyEvent: null };
  await runTask(planOf({ ...setup, sandboxUrl: urlOf(sandbox) }, place));
  return sandbox;
}

function planOf({ sandboxUrl, ...plan }: StartPlan, { options, database, logs }: Place): PartPlan {
  const { apiPort, tokens, redisUrl, settings } = options;
  const env = {
    ...inherited(),
    HOLDPOINT_DATABASE_URL: database.url,
    HOLDPOINT_API_PORT: String(apiPort),
    HOLDPOINT_API_TOKENS: tokens,
    NODE_COMPILE_CACHE: COMPILE_CACHE, // processes that are started again and again start faster
    HOLDPOINT_LOG_LEVEL: "info",
    HOLDPOINT_DRAIN_MS: String(DRAIN_MS),
    ...(redisUrl === null ? {} : { HOLDPOINT_REDIS_URL: redisUrl }),
    REFUND_DESK_DATABASE_URL: database.refundDeskUrl,
    ...(sandboxUrl === undefined ? {} : { REFUND_DESK_STRIPE_URL: sandboxUrl }),
    ...settings,
  };
  return { ...plan, env, logFile: join(logs, `${plan.name}.log`) };
}

/** Our own environment without settings of Holdpoint: what a fleet is made of is said here, not left over in a shell. */
function inherited(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("HOLDPOINT_"));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** All results, or the first failure once nothing is under way any more, so that whatever was started can be stopped. */
async function together<const Work extends readonly Promise<unknown>[]>(
  work: Work,
): Promise<{ -readonly [Index in keyof Work]: Awaited<Work[Index]> }> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

async function stopInOrder(started: readonly Part[], report: (line: string) => void): Promise<void> {
  for (const names of STOP_ORDER)
    await stopAll(
      started.filter(({ name }) => names.includes(name)),
      report,
    );
}

async function stopAll(parts: readonly Part[], report: (line: string) => void): Promise<void> {
  await Promise.all(
    parts.map(async (part) => {
      if (!part.isAlive()) return;
      const how = await part.stop(STOP_LIMIT_MS);
      report(
        how === "drained"
          ? `${part.name} drained and stopped`
          : `${part.name} did not stop in ${STOP_LIMIT_MS / 1_000} s and was killed`,
      );
    }),
  );
}

function urlOf({ name, ready, logFile }: Part): string {
  if (typeof ready.port !== "number") throw new Error(`${name} did not say on which port it listens (see ${logFile})`);
  return `http://127.0.0.1:${ready.port}`;
}
