import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { removePostgres, startPostgres } from "@holdpoint/embedded";
import { findViolations, openStore } from "@holdpoint/store";
import { z } from "zod";
import { openFleet } from "./fleet/fleet.ts";
import { type Played, play } from "./play.ts";
import { openRefundScenario } from "./refund-scenario.ts";
import { type AcceptanceReport, buildReport, renderReport } from "./report.ts";
import { findRetailData } from "./retail-data.ts";
import { openRetailScenario } from "./retail-scenario.ts";
import type { Scenario, ScenarioOptions } from "./scenario.ts";
import { tokensFor } from "./tokens.ts";

const HELP = `The acceptance test: real work on a fleet whose processes are killed all the time, and an outside world that counts.

  npm run test:acceptance -- [--seed <text>] [--limit <seconds>] [--work <kind>] [--keep]

  --seed    chooses victims, pauses, held replies (default TEST_SEED, else a new one; the report names it)
  --limit   hard limit of the play in seconds, 30 to 1800 (default 300)
  --work    retail (the default) or refunds
  --keep    keep what the programs printed, also when all went well
  --help    this text

Plays the tau-retail tasks (HOLDPOINT_RETAIL_DATA, else ../shared/data/tau-retail); where they are absent, refunds of the
refund desk. HOLDPOINT_REDIS_URL puts the queue on that Redis. Ctrl-C stops everything that was started.
`;

const Options = z.object({
  seed: z.string().regex(/^[\w-]{1,60}$/, "must be 1 to 60 letters, digits, _ or -"),
  limit: z.coerce.number().int().min(30).max(1_800).default(300),
  work: z.enum(["retail", "refunds"]).default("retail"),
  keep: z.boolean().default(false),
});

const SIZE = { machines: 2, processesEach: 2, slots: 8 };

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null) {
    say(HELP.trimEnd());
    return 0;
  }
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupted.abort());
  const folder = await mkdtemp(join(tmpdir(), "holdpoint-acceptance-"));
  const logDir = join(folder, "logs");
  await mkdir(logDir);
  try {
    const report = await runIn({ ...options, folder, logDir, interrupted: interrupted.signal });
    process.stdout.write(`\n${renderReport(report)}`);
    if (report.failures.length > 0) throw new FailedError();
    if (options.keep) say(`what the programs printed: ${logDir}`);
    else await rm(folder, { recursive: true });
    return 0;
  } catch (error) {
    if (interrupted.signal.aborted) {
      await rm(folder, { recursive: true });
      say("interrupted: everything that was started has been stopped");
      return 130;
    }
    if (!(error instanceof FailedError)) say(`acceptance failed: ${messageOf(error)}\nseed ${options.seed}`);
    say(`what the programs printed: ${logDir}`);
    return 1;
  }
}

/** The report says why. */
class FailedError extends Error {}

interface RunOptions {
  readonly seed: string;
  readonly limit: number;
  readonly work: "retail" | "refunds";
  readonly folder: string;
  readonly logDir: string;
  readonly interrupted: AbortSignal;
}

async function runIn({ seed, limit, work, folder, logDir, interrupted }: RunOptions): Promise<AcceptanceReport> {
  await using product = await openServer(join(folder, "product"));
  await using outside = await openServer(join(folder, "outside"));
  interrupted.throwIfAborted();
  await using scenario = await openScenario(work, { seed, databaseUrl: outside.url, logDir, env: process.env });
  await using fleet = await openFleet({
    ...SIZE,
    databaseUrl: product.url,
    agents: scenario.agents,
    tokens: tokensFor(scenario.cases),
    logDir,
    interrupted,
    env: process.env,
  });
  const { machines, processesEach } = SIZE;
  say(`${scenario.title}, ${machines * processesEach} working processes on ${machines} supervisors, seed ${seed}`);
  const played = await play({
    scenario,
    fleet,
    seed,

    limitMs: limit * 1_000,
    interrupted,
    say,
  });
  const findings = await scenario.judge(played.evidence);
  await using store = openStore({ url: product.url });
  const violations = await findViolations(store);
  const broken = violations.map(({ rule, runId }) => `run ${runId} breaks the rule ${rule}`);
  return buildReport(
    findings,
    countsOf({ ...played, faults: [...played.faults, ...broken] }, seed, {
      lookUps: fleet.lookUps(),
      invariantViolations: violations.length,
    }),
    scenario.minimums,
  );
}

function countsOf(
  { kills, takeovers, operatorRetries, durationMs, faults }: Played,
  seed: string,
  counted: { readonly lookUps: number; readonly invariantViolations: number },
) {
  return {
    seed,
    kills: kills.length,
    killsAfterWrite: kills.filter(({ afterWrite }) => afterWrite !== null).length,
    killsOfMachines: kills.filter(({ scope }) => scope === "machine").length,
    takeovers,
    operatorRetries,
    durationMs,
    faults,
    ...counted,
  };
}

/** The retail tasks, or refunds: where these were asked for, or where the retail data is absent. */
function openScenario(work: RunOptions["work"], options: ScenarioOptions): Promise<Scenario> {
  const data = work === "refunds" ? null : findRetailData(process.env);
  if (data !== null) return openRetailScenario(data, options);
  if (work === "retail") say("the tau-retail data is absent (HOLDPOINT_RETAIL_DATA): refunds are played instead");
  return openRefundScenario(options);
}

/** A Postgres server that is gone afterwards. */
async function openServer(dataDir: string): Promise<{ readonly url: string } & AsyncDisposable> {
  // Killed processes leave their connections behind for a moment.
  const { url } = await startPostgres({ dataDir, settings: { max_connections: "300" } });
  return { url, [Symbol.asyncDispose]: () => removePostgres({ dataDir }) };
}

function readOptions(): z.infer<typeof Options> | null {
  const { values } = parseArgs({
    options: {
      seed: { type: "string" },
      limit: { type: "string" },
      work: { type: "string" },
      keep: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return null;
  const seed = values.seed ?? (process.env.TEST_SEED || newSeed());
  const options = Options.safeParse({ ...values, seed });
  if (!options.success) throw new Error(`${z.prettifyError(options.error)}\nTry --help.`);
  return options.data;
}

function newSeed(): string {
  return Math.floor(Math.random() * 2 ** 31).toString();
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`acceptance: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
