import type { Client } from "@holdpoint/client";
import { ROUTES } from "@holdpoint/protocol";
import { Command } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { readDuration } from "../read-duration.ts";
import { showRun } from "../show/run.ts";
import { showSchedule, showSchedulePage, showSchedules } from "../show/schedules.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption, readAgent } from "./shared.ts";

type New = Parameters<Client["createSchedule"]>[0];
type Overlap = NonNullable<New["overlap"]>;

const OVERLAPS: readonly string[] = ROUTES.createSchedule.body.shape.overlap.unwrap().options;
const MOST_MISSED = 100;

/** `holdpoint schedules …`. */
export function schedulesCommand(world: World): Command {
  return new Command("schedules")
    .description("what starts runs by itself")
    .addCommand(listCommand(world))
    .addCommand(showCommand(world))
    .addCommand(createCommand(world))
    .addCommand(changeCommand(world))
    .addCommand(steerCommand(world, "pause", "start nothing more until it is resumed; a slot that waits is skipped"))
    .addCommand(steerCommand(world, "resume", "go on with the next slot; those of the pause are not made up"))
    .addCommand(runCommand(world))
    .addCommand(steerCommand(world, "delete", "end a schedule; runs that it has started go on"));
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("schedules, by name")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action((options: CommonOptions & { limit: number }) =>
      askAndPrint(world, options, {
        ask: (client) => client.listSchedules({ limit: options.limit }),
        show: ({ items, next }, view) => showSchedules(items, view) + andMore(next, view.out),
      }),
    );
}

function showCommand(world: World): Command {
  return new Command("show")
    .description("a schedule, and what became of its latest slots and why")
    .argument("<name>", "the schedule's name")
    .addOption(limitOption().default(20))
    .addOption(jsonOption())
    .action((name: string, options: CommonOptions & { limit: number }) =>
      askAndPrint(world, options, {
        ask: async (client) => {
          const [schedule, slots] = await Promise.all([
            client.showSchedule({ name }),
            client.listSlots({ name, limit: options.limit }),
          ]);
          return { schedule, slots };
        },
        show: ({ schedule, slots: { items, next } }, view) =>
          showSchedulePage({ schedule, slots: items }, view) + andMore(next, view.out),
      }),
    );
}

interface TimingOptions extends CommonOptions {
  readonly cron?: string;
  readonly zone?: string;
  readonly at?: string;
  readonly overlap?: string;
  readonly catchUp?: string;
  readonly catchUpWithin?: string;
}

function withTiming(command: Command): Command {
  return command
    .option("--cron <pattern>", 'minute, hour, day, month, weekday, like "30 9 * * MON-FRI"; or @hourly, @daily …')
    .option("--zone <zone>", "the time zone whose clocks show it, like Europe/Berlin")
    .option("--at <instant>", "in place of both, one instant, like 2026-12-24T09:00:00+01:00")
    .option("--overlap <what>", `while an earlier run has not ended: ${OVERLAPS.join(", ")}`)
    .option("--catch-up <n>", "how many slots that nobody was there for are made up, the newest")
    .option("--catch-up-within <time>", "how old such a slot may be, like 6h")
    .addOption(jsonOption());
}

function createCommand(world: World): Command {
  const command = new Command("create")
    .description("start runs by a pattern in a time zone, or once; they are asked for in your name")
    .argument("<name>", "the schedule's name, like stale-returns")
    .argument("<agent>", "the agent as name@version")
    .argument("<goal>", "what each run is to do");
  return withTiming(command).action((...given: [string, string, string, TimingOptions]) => {
    const [name, agent, goal, options] = given;
    const schedule: New = { name, agent: readAgent(agent), goal, ...readTiming(options) };
    return askAndPrint(world, options, { ask: (client) => client.createSchedule(schedule), show: showSchedule });
  });
}

function changeCommand(world: World): Command {
  const command = new Command("change")
    .description("change what a schedule does, for the runs it has yet to start")
    .argument("<name>", "the schedule's name")
    .option("--agent <agent>", "the agent as name@version")
    .option("--goal <goal>", "what each run is to do");
  return withTiming(command).action(
    (name: string, options: TimingOptions & { readonly agent?: string; readonly goal?: string }) => {
      const agent = options.agent === undefined ? {} : { agent: readAgent(options.agent) };
      const goal = options.goal === undefined ? {} : { goal: options.goal };
      const change = { name, ...agent, ...goal, ...readTiming(options) };
      return askAndPrint(world, options, { ask: (client) => client.changeSchedule(change), show: showSchedule });
    },
  );
}

function readTiming({ cron, zone, at, overlap, catchUp, catchUpWithin }: TimingOptions) {
  const slots = catchUp === undefined ? {} : { slots: readMissed(catchUp) };
  const within = catchUpWithin === undefined ? {} : { withinMs: readDuration("--catch-up-within", catchUpWithin) };
  const made = { ...slots, ...within };
  return {
    ...(cron === undefined ? {} : { cron }),
    ...(zone === undefined ? {} : { zone }),
    ...(at === undefined ? {} : { at }),
    ...(overlap === undefined ? {} : { overlap: readOverlap(overlap) }),
    ...(Object.keys(made).length === 0 ? {} : { catchUp: made }),
  };
}

function readOverlap(text: string): Overlap {
  if (text === "skip" || text === "queue" || text === "replace") return text;
  throw new UsageError(`--overlap is "${text}": it must be one of ${OVERLAPS.join(", ")}`);
}

function readMissed(text: string): number {
  const slots = Number(text);
  if (/^\d+$/.test(text) && slots <= MOST_MISSED) return slots;
  throw new UsageError(`--catch-up is "${text}": it must be a whole number from 0 to ${MOST_MISSED}`);
}

function steerCommand(world: World, verb: "pause" | "resume" | "delete", summary: string): Command {
  const ask = (client: Client, name: string) => {
    if (verb === "pause") return client.pauseSchedule({ name });
    return verb === "resume" ? client.resumeSchedule({ name }) : client.deleteSchedule({ name });
  };
  return new Command(verb)
    .description(summary)
    .argument("<name>", "the schedule's name")
    .addOption(jsonOption())
    .action((name: string, options: CommonOptions) =>
      askAndPrint(world, options, {
        ask: (client) => ask(client, name),
        show: (schedule, view) => (verb === "delete" ? `deleted: ${schedule.name}\n` : showSchedule(schedule, view)),
      }),
    );
}

function runCommand(world: World): Command {
  return new Command("run")
    .description("start a run of a schedule at once, whatever its other runs do")
    .argument("<name>", "the schedule's name")
    .option("--idempotency-key <key>", "the same request again under the same key makes nothing new")
    .addOption(jsonOption())
    .action((name: string, options: CommonOptions & { idempotencyKey?: string }) => {
      const { idempotencyKey } = options;
      return askAndPrint(world, options, {
        ask: (client) => client.startSchedule({ name }, idempotencyKey === undefined ? {} : { idempotencyKey }),
        show: showRun,
      });
    });
}
