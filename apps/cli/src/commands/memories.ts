import { Command } from "commander";
import type { World } from "../context.ts";
import { readDuration } from "../read-duration.ts";
import { showMemories, showMemory } from "../show/memories.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint memories …`. */
export function memoriesCommand(world: World): Command {
  return new Command("memories")
    .description("what agents are told of somebody beyond one conversation, until it expires")
    .addCommand(listCommand(world))
    .addCommand(putCommand(world))
    .addCommand(deleteCommand(world));
}

interface SubjectOptions extends CommonOptions {
  readonly subject?: string;
}

const SUBJECT = ["--subject <name>", "whose runs are told it; you unless you say so (operators)"] as const;

function listCommand(world: World): Command {
  return new Command("list")
    .description("what is kept, the oldest first")
    .option(...SUBJECT)
    .addOption(limitOption())
    .addOption(jsonOption())
    .action((options: SubjectOptions & { limit: number }) =>
      askAndPrint(world, options, {
        ask: (client) => client.listMemories({ limit: options.limit, ...subjectOf(options) }),
        show: ({ items, next }, view) => showMemories(items, view) + andMore(next, view.out),
      }),
    );
}

function putCommand(world: World): Command {
  return new Command("put")
    .description("keep a fact for the runs that are submitted from now on, in the place of what the key named before")
    .argument("<key>", "names the fact")
    .argument("<value>", "the fact; agents are told that it is data, and no instruction")
    .requiredOption("--for <time>", "for how long it is told, like 30d; a year at most")
    .option(...SUBJECT)
    .addOption(jsonOption())
    .action((key: string, value: string, options: SubjectOptions & { for: string }) => {
      const fact = { key, value, validForMs: readDuration("--for", options.for), ...subjectOf(options) };
      return askAndPrint(world, options, { ask: (client) => client.putMemory(fact), show: showMemory });
    });
}

function deleteCommand(world: World): Command {
  return new Command("delete")
    .description("tell a fact to no run any more that is submitted from now on")
    .argument("<memory>", "the memory's id")
    .addOption(jsonOption())
    .action((memoryId: string, options: CommonOptions) =>
      askAndPrint(world, options, {
        ask: (client) => client.deleteMemory({ memoryId }),
        show: (memory, view) => `deleted: ${showMemory(memory, view)}`,
      }),
    );
}

function subjectOf({ subject }: SubjectOptions): { readonly subject?: string } {
  return subject === undefined ? {} : { subject };
}
