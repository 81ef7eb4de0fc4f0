#!/usr/bin/env node
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pc from "picocolors";
import { DEVELOPMENT_TOKENS } from "./development-tokens.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { FleetRunsError } from "./fleet-database.ts";
import { tailOf } from "./log-file.ts";
import { endInWords, type Part } from "./part.ts";
import { chooseApiPort } from "./ports.ts";
import { untilStopped } from "./stop-signals.ts";
import { whatToTry } from "./what-to-try.ts";

const USAGE = `npm start (or: holdpoint dev)

Starts everything on this machine: Postgres, api, two workers, sweeper, and the refund desk with its payment sandbox.
Ctrl-C drains and stops all of it; the next start goes on with the same data (delete .holdpoint/ to begin anew).

Environment:
  HOLDPOINT_API_PORT    the api's port (4080, or a free one where that is taken)
  HOLDPOINT_REDIS_URL   queue on this Redis; without it the queue is in Postgres
`;

const FOLDER = fileURLToPath(new URL("../../../.holdpoint/", import.meta.url));

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { help: { type: "boolean", short: "h", default: false } } });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const stop = untilStopped();
  const fleet = await startFleet({
    folder: FOLDER,
    apiPort: await chooseApiPort(process.env.HOLDPOINT_API_PORT),
    tokens: DEVELOPMENT_TOKENS,
    redisUrl: process.env.HOLDPOINT_REDIS_URL || null,
    report: say,
    signal: stop.asked,
  });
  process.stdout.write(whatToTry(fleet));
  const ending = await Promise.race([stop.first.then(() => null), ...partsOf(fleet).map(untilEnded)]);
  if (ending === null) process.stdout.write("\nStopping: runs are given back, data stays. (Ctrl-C again: at once.)\n");
  else process.stderr.write(`\n${pc.red(ending)}\nStopping the rest.\n`);
  void stop.again.then(() => fleet.force());
  await fleet.stop();
  say("Postgres stopped");
  return ending === null ? 0 : 1;
}

function partsOf({ api, sandbox, sweeper, workers }: Fleet): readonly Part[] {
  return [api, sandbox, sweeper, ...workers];
}

async function untilEnded({ name, ended, logFile }: Part): Promise<string> {
  const end = await ended;
  return `${name} ended by itself (${endInWords(end)}). The last lines of ${logFile}:\n${tailOf(logFile)}`;
}

function say(line: string): void {
  process.stdout.write(`${pc.dim("·")} ${line}\n`);
}

try {
  process.exitCode = await main();
} catch (error) {
  const stopped = error instanceof Error && error.name === "AbortError";
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    stopped
      ? "stopped before everything was ready\n"
      : `${error instanceof FleetRunsError ? "" : "holdpoint dev: "}${message}\n`,
  );
  process.exitCode = stopped ? 130 : 1;
}
