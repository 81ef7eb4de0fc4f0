import { Command } from "commander";
import type { World } from "../context.ts";
import { showFindings } from "../show/findings.ts";
import { showServices } from "../show/services.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

type ListOptions = CommonOptions & { readonly limit: number };

/** `holdpoint services`. */
export function servicesCommand(world: World): Command {
  return new Command("services")
    .description("services that fail for everybody, and how many runs wait for each")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action((options: ListOptions) =>
      askAndPrint(world, options, {
        ask: (client) => client.listServices({ limit: options.limit }),
        show: ({ items, next }, view) => showServices(items, view) + andMore(next, view.out),
      }),
    );
}

/** `holdpoint findings`. */
export function findingsCommand(world: World): Command {
  return new Command("findings")
    .description("evidence that came late and says otherwise than what was settled, the newest first")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action((options: ListOptions) =>
      askAndPrint(world, options, {
        ask: (client) => client.listFindings({ limit: options.limit }),
        show: ({ items, next }, view) => showFindings(items, view) + andMore(next, view.out),
      }),
    );
}
