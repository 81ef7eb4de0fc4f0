import type { Client } from "@holdpoint/client";
import type { Approval, Reply } from "@holdpoint/protocol";
import { Command } from "commander";
import { openClient, type World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showApproval } from "../show/approvals.ts";
import { showRun } from "../show/run.ts";
import { askAndPrint, type CommonOptions, jsonOption, readJson } from "./shared.ts";

type Decision = Parameters<Client["decideApproval"]>[0];
type WithoutNames<Each> = Each extends unknown ? Omit<Each, "approvalId" | "argsHash"> : never;
/** A decision without the names of what it is about. */
type Kind = WithoutNames<Decision>;

interface DecideOptions extends CommonOptions {
  readonly hash?: string;
  readonly note?: string;
  readonly yes?: boolean;
}

/** One command for each kind of decision. */
export function decisionCommands(world: World): readonly Command[] {
  return [
    approveCommand(world),
    editCommand(world),
    respondCommand(world),
    refusing(world, "reject", {
      decision: "reject",
      summary: "reject a request; the agent is told the note",
      why: "why; it is recorded, and the agent is told",
    }),
    refusing(world, "abort", {
      decision: "reject_and_abort",
      summary: "reject a request and stop its run",
      why: "why; it is recorded",
    }),
    passing(world, "skip", "let the agent go on without the call"),
    passing(world, "escalate", "pass a request on to those who are asked next"),
  ];
}

function approveCommand(world: World): Command {
  return releasing("approve", "approve exactly what was shown").action((request: string, options: DecideOptions) =>
    release(world, { request, options, kind: { decision: "approve", ...noteOf(options) } }),
  );
}

function editCommand(world: World): Command {
  return releasing("edit", "approve with other arguments, which go through the rules again")
    .requiredOption("--args <json>", "all the arguments that are to run, as JSON or @file")
    .action(async (request: string, options: DecideOptions & { args: string }) => {
      const args = await readJson(world, "--args", options.args);
      await release(world, { request, options, kind: { decision: "approve_with_edits", args, ...noteOf(options) } });
    });
}

function respondCommand(world: World): Command {
  return releasing("respond", "answer the agent instead of running the call")
    .requiredOption("--answer <json>", "what the agent is given as the call's result, as JSON or @file")
    .action(async (request: string, options: DecideOptions & { answer: string }) => {
      const answer = await readJson(world, "--answer", options.answer);
      await release(world, { request, options, kind: { decision: "respond", answer, ...noteOf(options) } });
    });
}

interface Refusing {
  readonly decision: "reject" | "reject_and_abort";
  readonly summary: string;
  /** What becomes of the note. */
  readonly why: string;
}

function refusing(world: World, name: string, { decision, summary, why }: Refusing): Command {
  return deciding(name, summary)
    .requiredOption("--note <text>", why)
    .action((request: string, options: DecideOptions & { note: string }) =>
      decide(world, { request, options, kind: { decision, note: options.note } }),
    );
}

function passing(world: World, decision: "skip" | "escalate", summary: string): Command {
  return deciding(decision, summary)
    .option("--note <text>", "a note for the record")
    .action((request: string, options: DecideOptions) =>
      decide(world, { request, options, kind: { decision, ...noteOf(options) } }),
    );
}

/** A command for a decision that lets something happen: it is about what somebody has seen, by its hash. */
function releasing(name: string, summary: string): Command {
  return new Command(name)
    .description(`${summary}: name its hash, or say --yes to what this command shows`)
    .argument("<request>", "the request's id")
    .option("--hash <hash>", "the hash that was shown with the arguments")
    .option("--yes", "show the request and decide about it as shown")
    .option("--note <text>", "a note for the record")
    .addOption(jsonOption());
}

/** A command for a decision that lets nothing happen. */
function deciding(name: string, summary: string): Command {
  return new Command(name)
    .description(summary)
    .argument("<request>", "the request's id")
    .option("--hash <hash>", "the hash that was shown with the arguments; without it, of what this command shows")
    .addOption(jsonOption());
}

function noteOf({ note }: DecideOptions): { readonly note?: string } {
  return note === undefined ? {} : { note };
}

interface Deciding {
  readonly request: string;
  readonly options: DecideOptions;
  readonly kind: Kind;
}

/** Decides only about a hash that was named, or what the command shows and was told to take. */
async function release(world: World, deciding: Deciding): Promise<void> {
  const { request, options } = deciding;
  if (options.hash !== undefined || options.yes === true) return decide(world, deciding);
  const shown = await openClient(world).showApproval({ approvalId: request });
  world.err(showApproval(shown, { out: world.out, now: world.now() }));
  throw new UsageError(`nothing was decided. To decide about exactly this: --hash ${shown.argsHash} (or --yes)`);
}

async function decide(world: World, { request: approvalId, options, kind }: Deciding): Promise<void> {
  await askAndPrint(world, options, {
    ask: async (client) => {
      const argsHash = options.hash ?? (await shownHash(world, client, { approvalId, json: options.json === true }));
      return client.decideApproval({ ...kind, approvalId, argsHash });
    },
    show: (decided, view) => `${outcome(decided)}\n\n${showRun(decided.run, view)}`,
  });
}

/** Shows the request, and takes the hash of what it has shown. */
async function shownHash(
  world: World,
  client: Client,
  { approvalId, json }: { readonly approvalId: string; readonly json: boolean },
): Promise<string> {
  const approval = await client.showApproval({ approvalId });
  if (!json) world.out.write(`${showApproval(approval, { out: world.out, now: world.now() })}\n`);
  return approval.argsHash;
}

function outcome({ approval, repeated }: Reply<"decideApproval">): string {
  return `${approval.id}: ${become(approval)}${repeated ? ", as before: the first decision counts" : ""}`;
}

function become({ state, decidedBy, terms, level, supersededBy, approvers }: Approval): string {
  const by = decidedBy ?? "nobody";
  switch (state) {
    case "pending":
      return terms.given === 0 && level > 0
        ? `passed on to ${[...approvers.roles, ...approvers.users].join(", ")}`
        : `${terms.given} of ${terms.quorum} have approved`;
    case "spent":
      return `approved by ${by}, and it has run`;
    case "superseded":
      return `edited by ${by}; what it has become is ${supersededBy ?? "another request"}`;
    default:
      return `${state} by ${by}`;
  }
}
