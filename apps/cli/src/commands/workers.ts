import { Command } from "commander";
import type { World } from "../context.ts";
import { showWorkers } from "../show/workers.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint workers`. */
export function workersCommand(world: World): Command {
  return new Command("workers")
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
