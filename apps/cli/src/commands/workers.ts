import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@holdpoint/client";
import type { Worker } from "@holdpoint/protocol";
import { Command } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showRestartPlan } from "../show/restart-plan.ts";
import { showTakeover } from "../show/takeover.ts";
import { showDrain, showWorkers } from "../show/workers.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint workers …`; without a verb it lists. */
export function workersCommand(world: World): Command {
  return new Command("workers")
    .description("working processes: list, plan a restart, drain, take a run away")
    .enablePositionalOptions()
    .addCommand(listCommand(world), { isDefault: true })
    .addCommand(planCommand(world))
    .addCommand(drainCommand(world))
    .addCommand(takeoverCommand(world));
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("working processes, the newest first")
    .option("--gone", "those that are gone as well")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action(async (options: CommonOptions & { gone?: boolean; limit: number }) => {
      await askAndPrint(world, options, {
        ask: (client) => client.listWorkers({ limit: options.limit, gone: options.gone === true }),
        show: ({ items, next }, view) => showWorkers(items, view) + andMore(next, view.out),
      });
    });
}

function planCommand(world: World): Command {
  return new Command("plan-restart")
    .description("what is in flight on a worker, and what a restart does to each; changes nothing")
    .argument("<worker|host>", "a worker's id, or the name of a host for all of its workers")
    .addOption(jsonOption())
    .action((worker: string, options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.planRestart({ worker }), show: showRestartPlan }),
    );
}

interface DrainOptions extends CommonOptions {
  readonly stayDown?: boolean;
  readonly wait?: boolean;
  readonly timeout: number;
}

function drainCommand(world: World): Command {
  return new Command("drain")
    .description("let a worker give its runs back and end; its supervisor starts another in its place")
    .argument("<worker>", "the worker's id")
    .option("--stay-down", "its supervisor starts no other in its place")
    .option("--wait", "wait until it has ended and no run is its own")
    .option("--timeout <seconds>", "how long to wait at most, with --wait", readTimeout, 300)
    .addOption(jsonOption())
    .action((workerId: string, options: DrainOptions) =>
      askAndPrint(world, options, {
        ask: async (client) => {
          const worker = await client.drainWorker({ workerId, stayDown: options.stayDown === true });
          return options.wait === true ? untilDrained(client, worker, options.timeout) : worker;
        },
        show: showDrain,
      }),
    );
}

const POLL_MS = 500;

/** A worker without runs may still take one up: only one that has ended, and has none, is drained. */
async function untilDrained(client: Client, asked: Worker, timeoutSeconds: number): Promise<Worker> {
  let worker = asked;
  for (let waitedMs = 0; waitedMs < timeoutSeconds * 1_000; waitedMs += POLL_MS) {
    worker = await client.showWorker({ workerId: asked.id });
    if (worker.goneAt !== null && worker.ownedRuns === 0) return worker;
    await sleep(POLL_MS);
  }
  const left = worker.ownedRuns === 0 ? "has not ended" : `still has ${worker.ownedRuns} runs`;
  throw new Error(
    `The worker ${left} after ${timeoutSeconds} s; it goes on draining. \`holdpoint workers plan-restart ${worker.id}\` says what it waits for.`,
  );
}

interface TakeoverOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly apply?: boolean;
  readonly reason?: string;
}

function takeoverCommand(world: World): Command {
  return new Command("takeover")
    .description("take a run from its worker, or see what that would do")
    .argument("<run>", "the run's id")
    .option("--dry-run", "only say what it would do (unless --apply is given)")
    .option("--apply", "do it")
    .option("--reason <text>", "why; it is recorded, and required with --apply")
    .addOption(jsonOption())
    .action((runId: string, { dryRun, apply = false, reason, ...options }: TakeoverOptions) => {
      if (apply && dryRun === true) throw new UsageError("Give --dry-run or --apply, not both");
      if (apply && reason === undefined)
        throw new UsageError("--apply needs --reason: it is recorded with the takeover");
      return askAndPrint(world, options, {
        ask: (client) => client.takeOverRun({ runId, apply, ...(reason === undefined ? {} : { reason }) }),
        show: showTakeover,
      });
    });
}

function readTimeout(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 86_400) return seconds;
  throw new UsageError(`--timeout is "${text}": it must be a whole number of seconds from 1 to 86400`);
}
