import type { Retention } from "@holdpoint/protocol";
import { Command, Option } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showAudit, showMaintenance, showRetention, showTombstones } from "../show/upkeep.ts";
import { askAndPrint, type CommonOptions, jsonOption } from "./shared.ts";

/** Applying starts nothing new after 20 s; what it has started may take a little longer. */
const APPLY_TIMEOUT_MS = 60_000;

/** `holdpoint maintenance`. */
export function maintenanceCommand(world: World): Command {
  return new Command("maintenance")
    .description("what is to be put right now; --apply does it. Both print the same list")
    .addOption(new Option("--dry-run", "only look; the default").conflicts("apply"))
    .option("--apply", "do it; each action is judged anew as it is done")
    .addOption(jsonOption())
    .action(async ({ apply = false, ...options }: CommonOptions & { apply?: boolean }) => {
      await askAndPrint(world, options, {
        ask: (client) => client.maintain({ apply }, { timeoutMs: APPLY_TIMEOUT_MS }),
        show: showMaintenance,
      });
    });
}

/** `holdpoint audit`. */
export function auditCommand(world: World): Command {
  return new Command("audit")
    .description("what is not as it should be, errors first, each with the command that mends it")
    .addOption(jsonOption())
    .action((options: CommonOptions) =>
      askAndPrint(world, options, {
        ask: (client) => client.audit(),
        show: ({ items }, view) => showAudit(items, view),
      }),
    );
}

interface FindOptions extends CommonOptions {
  readonly operationId?: string;
  readonly externalRef?: string;
}

/** `holdpoint tombstones`. */
export function tombstonesCommand(world: World): Command {
  return new Command("tombstones")
    .description("what is left of a run that was removed: by its id, or by an effect of it")
    .argument("[run]", "the run's id")
    .option("--operation-id <id>", "the id of an operation of its effects")
    .option("--external-ref <ref>", "the other side's name for an effect")
    .addOption(jsonOption())
    .action(async (runId: string | undefined, { operationId, externalRef, ...options }: FindOptions) => {
      const key = Object.entries({ runId, operationId, externalRef }).filter(([, value]) => value !== undefined);
      if (key.length !== 1) throw new UsageError("name one: a run's id, --operation-id or --external-ref");
      await askAndPrint(world, options, {
        ask: (client) => client.findTombstones(Object.fromEntries(key)),
        show: ({ items }, view) => showTombstones(items, view),
      });
    });
}

const DAYS = ["succeeded", "partial", "blocked", "failed", "cancelled", "tombstone"] as const;

/** `holdpoint retention`. */
export function retentionCommand(world: World): Command {
  const command = new Command("retention").description("how long runs are kept after their end; options change it");
  for (const what of DAYS) {
    const option = new Option(
      `--${what} <days>`,
      what === "tombstone" ? "tombstones and keys, from the removal" : `runs that end ${what}`,
    );
    command.addOption(option.argParser(readDays(what)));
  }
  return command.addOption(jsonOption()).action(async ({ json, ...days }: CommonOptions & Record<string, unknown>) => {
    const changes: Partial<Retention> = Object.fromEntries(
      Object.entries(days).map(([what, value]) => [`${what}Days`, value]),
    );
    await askAndPrint(world, json === undefined ? {} : { json }, {
      ask: (client) =>
        Object.keys(changes).length === 0 ? client.showRetention() : client.changeRetention(changes as Retention),
      show: showRetention,
    });
  });
}

function readDays(what: string): (text: string) => number {
  return (text) => {
    const days = Number(text);
    if (Number.isInteger(days) && days >= 1 && days <= 36_500) return days;
    throw new UsageError(`--${what} is "${text}": it must be a whole number of days, from 1 to 36500`);
  };
}
