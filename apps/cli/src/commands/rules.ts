import type { Client } from "@holdpoint/client";
import { Command } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showDenied, showLifted, showRules, showVerdict } from "../show/rules.ts";
import { askAndPrint, type CommonOptions, jsonOption, readAgent, readJson } from "./shared.ts";

/** `holdpoint rules …`. */
export function rulesCommand(world: World): Command {
  return new Command("rules")
    .description("rules about tool calls: who is asked, and what is forbidden")
    .addCommand(listCommand(world))
    .addCommand(testCommand(world))
    .addCommand(denyCommand(world))
    .addCommand(liftCommand(world));
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("every rule that is in force")
    .addOption(jsonOption())
    .action((options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.listRules(), show: showRules }),
    );
}

function testCommand(world: World): Command {
  return new Command("test")
    .description("what would become of a call, and by which rule; nothing is called")
    .argument("<agent>", "the agent as name@version")
    .argument("<tool>", "the tool's name")
    .requiredOption("--args <json>", "the call's arguments, as JSON or @file")
    .addOption(jsonOption())
    .action(async (agent: string, tool: string, options: CommonOptions & { args: string }) => {
      const call = { agent: readAgent(agent), tool, args: await readJson(world, "--args", options.args) };
      await askAndPrint(world, options, { ask: (client) => client.testRules(call), show: showVerdict });
    });
}

interface DenyOptions extends CommonOptions {
  readonly tool: readonly string[];
  readonly when?: readonly string[];
  readonly message: string;
  readonly reason: string;
}

function denyCommand(world: World): Command {
  return new Command("deny")
    .description("forbid calls from now on, also those that were approved and have not started")
    .argument("<name>", "names the rule, like no_refunds")
    .requiredOption("--tool <names...>", "the tools that it is about, or *")
    .option("--when <conditions...>", "each like 'amount > 100.00' or 'country in [\"NO\",\"SE\"]'; all must be met")
    .requiredOption("--message <text>", "what the agent is told")
    .requiredOption("--reason <text>", "why; it is recorded")
    .addOption(jsonOption())
    .action(async (name: string, options: DenyOptions) => {
      const { tool, when = [], message, reason } = options;
      const rule = { name, tools: [...tool], when: when.map(readCondition), message };
      await askAndPrint(world, options, { ask: (client) => client.denyCalls({ rule, reason }), show: showDenied });
    });
}

function liftCommand(world: World): Command {
  return new Command("lift")
    .description("take back what was forbidden")
    .argument("<name>", "the rule's name")
    .addOption(jsonOption())
    .action((name: string, options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.liftDenial({ name }), show: showLifted }),
    );
}

type Condition = NonNullable<Parameters<Client["denyCalls"]>[0]["rule"]["when"]>[number];

const CONDITION = /^(\S+)\s+(=|!=|>=?|<=?|in)\s+(.+)$/s;

/** Reads `argument operator value`. Decimals stay as they are written: none of their digits may get lost. */
function readCondition(text: string): Condition {
  const [, argument, is, written] = CONDITION.exec(text.trim()) ?? [];
  if (argument === undefined || is === undefined || written === undefined) {
    throw new UsageError(`--when "${text}" must be an argument, one of = != > >= < <= in, and a value`);
  }
  if (is === ">" || is === ">=" || is === "<" || is === "<=") return { argument, is, value: written };
  const value = readValue(written);
  if (is === "=" || is === "!=") return { argument, is, value };
  if (Array.isArray(value)) return { argument, is: "in", value };
  throw new UsageError(`--when "${text}": \`in\` needs a list, like ["NO","SE"]`);
}

function readValue(written: string): ReturnType<typeof JSON.parse> {
  if (!/^(["[{]|true$|false$|null$)/.test(written)) return written;
  try {
    return JSON.parse(written);
  } catch {
    throw new UsageError(`--when: ${written} is neither JSON nor a plain word`);
  }
}
