import type { Client } from "@holdpoint/client";
import { type Approval, ApprovalState } from "@holdpoint/protocol";
import { Command } from "commander";
import { openClient, type World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showApproval, showApprovals } from "../show/approvals.ts";
import { showRun } from "../show/run.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint approvals …`. */
export function approvalsCommand(world: World): Command {
  return new Command("approvals")
    .description("approval requests, and their decisions")
    .addCommand(listCommand(world))
    .addCommand(showCommand(world))
    .addCommand(approveCommand(world))
    .addCommand(rejectCommand(world));
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
    .option("--mine", "only what you may decide")
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
    .description("a request with the arguments as they will run, and their hash")
    .argument("<request>", "the request's id")
    .addOption(jsonOption())
    .action(async (approvalId: string, options: CommonOptions) => {
      await askAndPrint(world, options, { ask: (client) => client.showApproval({ approvalId }), show: showApproval });
    });
}

interface DecideOptions extends CommonOptions {
  readonly hash?: string;
  readonly note?: string;
  readonly yes?: boolean;
}

function approveCommand(world: World): Command {
  return new Command("approve")
    .description("approve exactly what was shown: name its hash, or say --yes to what this command shows")
    .argument("<request>", "the request's id")
    .option("--hash <hash>", "the hash that was shown with the arguments")
    .option("--yes", "show the request and approve it as shown")
    .option("--note <text>", "a note for the record")
    .addOption(jsonOption())
    .action(async (approvalId: string, options: DecideOptions) => {
      if (options.hash !== undefined || options.yes === true)
        return decide(world, options, { approvalId, decision: "approve" });
      const shown = await openClient(world).showApproval({ approvalId });
      world.err(showApproval(shown, { out: world.out, now: world.now() }));
      throw new UsageError(`nothing was decided. To approve exactly this: --hash ${shown.argsHash} (or --yes)`);
    });
}

function rejectCommand(world: World): Command {
  return new Command("reject")
    .description("reject a request; the agent is told the note")
    .argument("<request>", "the request's id")
    .requiredOption("--note <text>", "why; it is recorded")
    .option("--hash <hash>", "the hash that was shown with the arguments; without it, of what this command shows")
    .addOption(jsonOption())
    .action((approvalId: string, options: DecideOptions) => decide(world, options, { approvalId, decision: "reject" }));
}

interface Decision {
  readonly approvalId: string;
  readonly decision: "approve" | "reject";
}

async function decide(world: World, options: DecideOptions, decision: Decision): Promise<void> {
  const { note } = options;
  await askAndPrint(world, options, {
    ask: async (client) => {
      const argsHash = options.hash ?? (await shownHash(world, client, { ...options, ...decision }));
      return client.decideApproval({ ...decision, argsHash, ...(note === undefined ? {} : { note }) });
    },
    show: ({ approval, run, repeated }, view) => `${verdict(approval, repeated)}\n\n${showRun(run, view)}`,
  });
}

/** Shows the request, and takes the hash of what it has shown. */
async function shownHash(
  world: World,
  client: Client,
  { approvalId, json }: Decision & CommonOptions,
): Promise<string> {
  const approval = await client.showApproval({ approvalId });
  if (json !== true) world.out.write(`${showApproval(approval, { out: world.out, now: world.now() })}\n`);
  return approval.argsHash;
}

function verdict({ id, state, decidedBy }: Approval, repeated: boolean): string {
  const before = repeated ? ", as before: the first decision counts" : "";
  return `${id}: ${state === "spent" ? "approved, and it has run" : state} by ${decidedBy ?? "nobody"}${before}`;
}

function readState(text: string): Approval["state"] {
  const parsed = ApprovalState.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new UsageError(`--state: there is no state "${text}"; there are ${ApprovalState.options.join(", ")}, or all`);
}
