import { Command } from "commander";
import type { World } from "../context.ts";
import { showAssignment, showAssignments } from "../show/assignments.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint assignments …`. */
export function assignmentsCommand(world: World): Command {
  return new Command("assignments")
    .description("who has which approver's role")
    .addCommand(listCommand(world))
    .addCommand(changeCommand(world, "grant", "give somebody an approver's role"))
    .addCommand(
      changeCommand(world, "revoke", "take a role from somebody; their unspent approvals in it count no more"),
    );
}

interface ListOptions extends CommonOptions {
  readonly user?: string;
  readonly role?: string;
  readonly limit: number;
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("assignments by user and role, also those that were revoked")
    .option("--user <name>", "only this person's")
    .option("--role <name>", "only this role's")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action(async (options: ListOptions) => {
      const { user, role, limit } = options;
      const filter = { limit, ...(user === undefined ? {} : { user }), ...(role === undefined ? {} : { role }) };
      await askAndPrint(world, options, {
        ask: (client) => client.listAssignments(filter),
        show: ({ items, next }, view) => showAssignments(items, view) + andMore(next, view.out),
      });
    });
}

function changeCommand(world: World, verb: "grant" | "revoke", summary: string): Command {
  return new Command(verb)
    .description(summary)
    .argument("<user>", "whose role it is")
    .argument("<role>", "the role, as approval rules name it")
    .addOption(jsonOption())
    .action((user: string, role: string, options: CommonOptions) =>
      askAndPrint(world, options, {
        ask: (client) => (verb === "grant" ? client.grantRole({ user, role }) : client.revokeRole({ user, role })),
        show: showAssignment,
      }),
    );
}
