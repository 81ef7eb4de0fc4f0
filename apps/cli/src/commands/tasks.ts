import type { Client, Input } from "@holdpoint/client";
import { Status } from "@holdpoint/protocol";
import { Command } from "commander";
import { openClient, openTaskClient, type World } from "../context.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { readDuration } from "../read-duration.ts";
import {
  showEnd,
  showHeartbeat,
  showIssued,
  showStarted,
  showTask,
  showTaskDefinition,
  showTasks,
} from "../show/tasks.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption, readAgent, readJson } from "./shared.ts";

/** `holdpoint tasks …`: work that is done elsewhere. With HOLDPOINT_TASK_TOKEN a script speaks for its task. */
export function tasksCommand(world: World, end: (exitCode: number) => void): Command {
  return new Command("tasks")
    .description("work that is done elsewhere: take it in hands, say how far it is and how it ended")
    .addCommand(listCommand(world))
    .addCommand(showCommand(world))
    .addCommand(defineCommand(world))
    .addCommand(tokenCommand(world))
    .addCommand(startCommand(world))
    .addCommand(heartbeatCommand(world, end))
    .addCommand(completeCommand(world))
    .addCommand(failCommand(world))
    .addCommand(releaseCommand(world));
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("tasks, the newest first")
    .option("--agent <name>", "only this task's, as name or name@version")
    .option("--status <statuses>", "one or more, separated by commas; `queued` waits for somebody")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action(async (options: CommonOptions & { agent?: string; status?: string; limit: number }) => {
      const { agent, status, limit } = options;
      const [name, agentVersion] = agent?.split("@") ?? [];
      const filter = {
        limit,
        ...(name === undefined ? {} : { agent: name }),
        ...(agentVersion === undefined ? {} : { agentVersion }),
        ...(status === undefined ? {} : { status: status.split(",").map(readStatus) }),
      };
      await askAndPrint(world, options, {
        ask: (client) => client.listTasks(filter),
        show: ({ items, next }, view) => showTasks(items, view) + andMore(next, view.out),
      });
    });
}

function showCommand(world: World): Command {
  return new Command("show")
    .description("a task, and who has it in hands")
    .argument("<run>", "the id of its run")
    .addOption(jsonOption())
    .action((runId: string, options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.showTask({ runId }), show: showTask }),
    );
}

interface DefineOptions extends CommonOptions {
  readonly heartbeat?: string;
  readonly grace?: string;
  readonly onFailure?: string;
  readonly retries?: string;
}

function defineCommand(world: World): Command {
  return new Command("define")
    .description("make a task known, so that runs of it can be submitted and started")
    .argument("<task>", "the task as name@version")
    .argument("<description>", "what the work is, for whoever is to do it")
    .option("--heartbeat <time>", "its executor is heard of within this time, like 30s or 24h (1m)")
    .option("--grace <time>", "how much longer it is waited for before the task is lost (1m)")
    .option("--on-failure <what>", "operator: one is asked; end: the run ends as failed (operator)")
    .option("--retries <n>", "failures that may be tried again, before that (1)")
    .addOption(jsonOption())
    .action(async (task: string, description: string, options: DefineOptions) => {
      const { heartbeat, grace, onFailure, retries } = options;
      const definition = {
        ...readAgent(task),
        description,
        ...(heartbeat === undefined ? {} : { heartbeatMs: readDuration("--heartbeat", heartbeat) }),
        ...(grace === undefined ? {} : { graceMs: readDuration("--grace", grace) }),
        ...(onFailure === undefined ? {} : { onFailure: readOnFailure(onFailure) }),
        ...(retries === undefined ? {} : { retries: readRetries(retries) }),
      };
      await askAndPrint(world, options, { ask: (client) => client.defineTask(definition), show: showTaskDefinition });
    });
}

function tokenCommand(world: World): Command {
  return new Command("token")
    .description("a token for a task: for whoever has it in hands, or else to start it with; the one before ends")
    .argument("<run>", "the id of its run")
    .addOption(jsonOption())
    .action((runId: string, options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.issueTaskToken({ runId }), show: showIssued }),
    );
}

function startCommand(world: World): Command {
  return new Command("start")
    .description(
      "take a task in hands and print its token, once; with HOLDPOINT_TASK_TOKEN, by a token given out before",
    )
    .argument("<run>", "the id of its run")
    .option("--executor <name>", "who does it, for people to read")
    .option("--idempotency-key <key>", "the same start again under the same key is no other, and gives another token")
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions & { executor?: string; idempotencyKey?: string }) => {
      const { executor, idempotencyKey } = options;
      const input = { runId, ...(executor === undefined ? {} : { executor }) };
      const call = idempotencyKey === undefined ? {} : { idempotencyKey };
      await askAndPrint(world, options, {
        ask: (client) => client.startTask(input, call),
        show: showStarted,
        open: world.env.HOLDPOINT_TASK_TOKEN ? openTaskClient : openClient,
      });
    });
}

function heartbeatCommand(world: World, end: (exitCode: number) => void): Command {
  return new Command("heartbeat")
    .description(`a sign of life, with progress; exit code ${EXIT.stopAsked} says that the task is to stop or to pause`)
    .argument("<run>", "the id of the task's run")
    .option("--percent <n>", "how far it is, 0 to 100")
    .option("--text <text>", "how far it is, in words")
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions & { percent?: string; text?: string }) => {
      const { percent, text } = options;
      const progress = {
        ...(percent === undefined ? {} : { percent: readPercent(percent) }),
        ...(text === undefined ? {} : { text }),
      };
      const input = Object.keys(progress).length === 0 ? { runId } : { runId, progress };
      const ask = async (client: Client) => {
        const beat = await client.heartbeatTask(input);
        if (beat.stop || beat.pause) end(EXIT.stopAsked);
        return beat;
      };
      await askAndPrint(world, options, { ask, show: showHeartbeat, open: openTaskClient });
    });
}

interface CompleteOptions extends CommonOptions {
  readonly partial?: string;
  readonly blocked?: string;
  readonly step?: string;
  readonly result?: string;
}

function completeCommand(world: World): Command {
  return new Command("complete")
    .description("the task is done: with success, unless something else is said")
    .argument("<run>", "the id of the task's run")
    .option("--partial <reason>", "done in part, and why not the rest")
    .option("--blocked <reason>", "it ran and achieved nothing, and why; whoever waits for it is held")
    .option("--step <name>", "with --blocked: at which step")
    .option("--result <json>", "what it brings home (or @file)")
    .addOption(jsonOption())
    .action(async (runId: string, options: CompleteOptions) => {
      const { result } = options;
      const done = {
        runId,
        outcome: outcomeOf(options),
        ...(result === undefined ? {} : { result: await readJson(world, "--result", result) }),
      };
      await askAndPrint(world, options, {
        ask: (client) => client.completeTask(done),
        show: showEnd,
        open: openTaskClient,
      });
    });
}

function outcomeOf({ partial, blocked, step }: CompleteOptions): Input<"completeTask">["outcome"] {
  if (partial !== undefined && blocked !== undefined)
    throw new UsageError("--partial and --blocked exclude each other");
  if (blocked === undefined && step !== undefined) throw new UsageError("--step goes with --blocked");
  if (blocked !== undefined) {
    if (step === undefined) throw new UsageError("--blocked needs --step: where the task could not go on");
    return { kind: "blocked", step, reason: blocked };
  }
  return partial === undefined ? { kind: "succeeded" } : { kind: "partial", reason: partial };
}

function failCommand(world: World): Command {
  return new Command("fail")
    .description("the task has failed, or has stopped as it was asked to")
    .argument("<run>", "the id of the task's run")
    .requiredOption("--reason <text>", "why")
    .option("--retryable", "nothing was done, or it may be done again")
    .option("--stopped", "it was asked to stop, and has")
    .addOption(jsonOption())
    .action(
      async (runId: string, options: CommonOptions & { reason: string; retryable?: boolean; stopped?: boolean }) => {
        const { reason, retryable = false, stopped = false } = options;
        if (retryable && stopped) throw new UsageError("--retryable and --stopped exclude each other");
        await askAndPrint(world, options, {
          ask: (client) => client.failTask({ runId, reason, retryable, stopped }),
          show: showEnd,
          open: openTaskClient,
        });
      },
    );
}

function releaseCommand(world: World): Command {
  return new Command("release")
    .description("somebody else is to do it: the task waits to be started again")
    .argument("<run>", "the id of the task's run")
    .option("--reason <text>", "why")
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions & { reason?: string }) => {
      const { reason } = options;
      await askAndPrint(world, options, {
        ask: (client) => client.releaseTask({ runId, ...(reason === undefined ? {} : { reason }) }),
        show: showEnd,
        open: openTaskClient,
      });
    });
}

function readStatus(text: string): (typeof Status.options)[number] {
  const parsed = Status.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new UsageError(`--status: there is no status "${text}"; there are ${Status.options.join(", ")}`);
}

function readOnFailure(text: string): "operator" | "end" {
  if (text === "operator" || text === "end") return text;
  throw new UsageError(`--on-failure is "${text}": it must be operator or end`);
}

function readRetries(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) <= 100) return Number(text);
  throw new UsageError(`--retries is "${text}": it must be a whole number from 0 to 100`);
}

function readPercent(text: string): number {
  if (/^\d{1,3}(\.\d+)?$/.test(text) && Number(text) <= 100) return Number(text);
  throw new UsageError(`--percent is "${text}": it must be a number from 0 to 100`);
}
