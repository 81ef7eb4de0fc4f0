#!/usr/bin/env node
import { parseArgs } from "node:util";
import { openWorkFolder } from "@holdpoint/embedded";
import { openPublisher, type QueueConnection } from "@holdpoint/queue";
import pc from "picocolors";
import { closeWithReport } from "./demo/closing-report.ts";
import { money } from "./demo/in-words.ts";
import { type Narrator, openNarrator } from "./demo/narrator.ts";
import type { LedgerRow } from "./demo/sandbox-admin.ts";
import { setStage } from "./demo/stage.ts";
import { playStory } from "./demo/story.ts";
import { DEVELOPMENT_TOKENS } from "./development-tokens.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { tailOf } from "./log-file.ts";
import { type StopSignals, untilStopped } from "./stop-signals.ts";

const USAGE = `npm run demo

Tells, on real processes, how a refund waits for its manager, survives two kills, and is paid once; then how two people
approve a larger one, how a manager changes the amount of a third, and how a workflow goes on whose worker is killed at
each of its nodes. Everything that it shows is checked: exit code 0
if all is so, 1 if not. It has data of its own, which it removes at its end.

Environment:
  HOLDPOINT_REDIS_URL   queue on this Redis; without it the queue is in Postgres
`;

/** Shorter than the defaults, in milliseconds, so that nobody has to wait for a lease to end. */
const SETTINGS = {
  HOLDPOINT_LEASE_MS: "3000",
  HOLDPOINT_RENEW_MS: "1000",
  HOLDPOINT_GRACE_MS: "1000",
  HOLDPOINT_SWEEP_MS: "500",
  // As if a model took a moment: so that there is time to kill a worker while it works on a node.
  REFUND_DESK_THINK_MS: "600",
};
const TIMES = "lease 3 s (default 15), renewal 1 s (5), grace 1 s (5), sweep 0.5 s (1)";

async function main(stop: StopSignals): Promise<void> {
  const startedMs = performance.now();
  const redisUrl = process.env.HOLDPOINT_REDIS_URL || null;
  const narrator = openNarrator((text) => process.stdout.write(text));
  narrator.plain(`\n${pc.bold("Holdpoint: a refund waits for its manager, survives two kills, and is paid once")}\n\n`);
  narrator.plain(`   queue   in ${redisUrl === null ? "Postgres" : "Redis"}\n   times   shortened: ${TIMES}\n\n`);
  const refunds = await play({ redisUrl, narrator, stop });
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  const amounts = refunds.map(({ amount, currency }) => money(amount, currency));
  narrator.plain(`\nEverything above was checked, and everything that was started is stopped: ${seconds} s.\n`);
  narrator.plain(`${pc.green(pc.bold(`${refunds.length} refunds, each paid once: ${amounts.join(", ")}.`))}\n`);
}

interface Play {
  readonly redisUrl: string | null;
  readonly narrator: Narrator;
  readonly stop: StopSignals;
}

/** Starts a fleet of its own, plays the story on it, and stops it. */
async function play({ redisUrl, narrator, stop }: Play): Promise<readonly LedgerRow[]> {
  const folder = await openWorkFolder("demo");
  await using cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => folder.remove());
  const fleet = await startFleet({
    folder: folder.path,
    apiPort: 0,
    tokens: DEVELOPMENT_TOKENS,
    redisUrl,
    settings: SETTINGS,
    report: (line) => narrator.plain(`   ${pc.dim("·")} ${line}\n`),
    signal: stop.asked,
  });
  cleanUp.defer(() => fleet.stop());
  void stop.again.then(() => fleet.force());
  const connection: QueueConnection =
    redisUrl === null ? { kind: "postgres", url: fleet.databaseUrl } : { kind: "redis", url: redisUrl };
  const queue = cleanUp.use(openPublisher(connection, { limitMs: 5_000 }));
  const stage = setStage({ fleet, queue, narrator, signal: stop.asked });
  try {
    const refunds = await closeWithReport(stage, await playStory(stage));
    narrator.chapter("The fleet drains and stops");
    return refunds;
  } catch (error) {
    if (!stop.asked.aborted) narrator.plain(`\n${pc.red("What the processes said at last:")}\n${lastWords(fleet)}\n`);
    throw error;
  }
}

function lastWords({ api, sandbox, sweeper, workers }: Fleet): string {
  return [...workers, sweeper, api, sandbox].map(({ name, logFile }) => `${name}\n${tailOf(logFile)}`).join("\n");
}

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h", default: false } } });
if (values.help) process.stdout.write(USAGE);
else {
  const stop = untilStopped();
  try {
    await main(stop);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(
      stop.asked.aborted
        ? "\nThe demo was stopped; everything that it started is stopped, too.\n"
        : `\n${pc.red(`The demo failed: ${message}`)}\n`,
    );
    process.exitCode = stop.asked.aborted ? 130 : 1;
  }
}
