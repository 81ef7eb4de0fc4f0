import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findRedis } from "@holdpoint/embedded";
import { withResults } from "./document.ts";
import type { Figure } from "./figure.ts";
import { FIGURES } from "./figures.ts";
import { describeMachine } from "./machine.ts";
import { HELP, type Options, readOptions } from "./options.ts";
import { missed, type Report, type Result, renderReport } from "./report.ts";
import { openStage, type Stage } from "./stage.ts";

const DOCUMENT = join(import.meta.dirname, "../../BENCHMARKS.md");

async function main(): Promise<void> {
  const hasRedis = findRedis() !== null;
  const options = readOptions(process.argv.slice(2), { known: FIGURES, hasRedis });
  if (options === null) {
    process.stdout.write(HELP);
    return;
  }
  if (!hasRedis) say("redis-server is not installed: only the queue on Postgres is measured");
  const interrupted = untilInterrupted();
  const report = await measure(options, interrupted);
  const text = renderReport(report);
  process.stdout.write(`\n${text}\n`);
  for (const line of missed(report)) say(`not reached: ${line}`);
  if (options.json !== null) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  if (options.write) await writeFile(DOCUMENT, withResults(await readFile(DOCUMENT, "utf8"), text));
}

async function measure({ settings, figures }: Options, interrupted: Promise<never>): Promise<Report> {
  await using stage = await openStage(settings);
  const generatedAt = `${new Date().toISOString().slice(0, 16)}Z`;
  const machine = await describeMachine(stage.servers);
  // After an interruption the servers are stopped at once; workers end when we do.
  return { generatedAt, machine, settings, results: await Promise.race([playAll(stage, figures), interrupted]) };
}

async function playAll(stage: Stage, figures: readonly Figure[]): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const figure of figures) results.push({ figure, rows: await figure.run(stage, say) });
  return results;
}

class InterruptedError extends Error {}

/** Rejects at a Ctrl-C. */
function untilInterrupted(): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    // Not only once: through npm, or to a whole group, one signal comes twice.
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.on(signal, () => {
        // The servers are stopped under a trial: what it has open breaks, and that is no news.
        process.on("uncaughtException", () => undefined);
        reject(new InterruptedError(`interrupted by ${signal}`));
      });
  });
  interrupted.catch(() => undefined); // it may come before anybody waits for it
  return interrupted;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

try {
  await main();
} catch (error) {
  const wasInterrupted = error instanceof InterruptedError;
  const text = error instanceof Error && !wasInterrupted ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`bench: ${text}\n`);
  process.exit(wasInterrupted ? 130 : 1); // what an interrupted trial has left open does not keep us
}
