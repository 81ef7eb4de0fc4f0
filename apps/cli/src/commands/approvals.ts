import { ApprovalState } from "@holdpoint/protocol";
import { Command } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showApproval, showApprovals } from "../show/approvals.ts";
import { decisionCommands } from "./decisions.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint approvals …`. */
export function approvalsCommand(world: World): Command {
  const command = new Command("approvals")
    .description("approval requests, and their decisions")
    .addCommand(listCommand(world))
    .addCommand(showCommand(world));
  for (const decision of decisionCommands(world)) command.addCommand(decision);
  return command;
}

interface ListOptions extends CommonOptions {
  readonly state: string;
  readonly run?: string;
  readonly mine?: boolean;
  readonly limit: number;
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("approval requests, the newest first; the pending ones unless --state says otherwise")
    .option(
      "--state <states>",
      `one or more, separated by commas, or all: ${ApprovalState.options.join(", ")}`,
      "pending",
    )
    .option("--run <id>", "only this run's")
    .option("--mine", "only what waits for your decision")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action(async (options: ListOptions) => {
      const { state, run: runId, mine, limit } = options;
      const filter = {
        limit,
        ...(state === "all" ? {} : { state: state.split(",").map(readState) }),
        ...(runId === undefined ? {} : { runId }),
        ...(mine === true ? { mine } : {}),
      };
      await askAndPrint(world, options, {
        ask: (client) => client.listApprovals(filter),
        show: ({ items, next }, view) => showApprovals(items, view) + andMore(next, view.out),
      });
    });
}

function showCommand(world: World): Command {
  return new Command("show")
    .description("a request with all that whoever decides it needs, and how to decide it")
    .argument("<request>", "the request's id")
    .addOption(jsonOption())
    .action(async (approvalId: string, options: CommonOptions) => {
      await askAndPrint(world, options, { ask: (client) => client.showApproval({ approvalId }), show: showApproval });
    });
}

function readState(text: string): (typeof ApprovalState.options)[number] {
  const parsed = ApprovalState.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new UsageError(`--state: there is no state "${text}"; there are ${ApprovalState.options.join(", ")}, or all`);
}
