import type { Client } from "@holdpoint/client";
import { ROUTES, type Run, Status } from "@holdpoint/protocol";
import { Command } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showExplanation } from "../show/explanation.ts";
import { type RunPage, showRun, showRunPage } from "../show/run.ts";
import { showChildren, showRuns } from "../show/runs.ts";
import {
  andMore,
  askAndPrint,
  type CommonOptions,
  jsonOption,
  limitOption,
  readAgent,
  readAll,
  readJson,
} from "./shared.ts";

const KINDS: readonly string[] = ROUTES.listRuns.query.shape.waitingForKind.unwrap().options;
const CHOICES = ROUTES.decideAsOperator.body.shape.choice.options;

/** `holdpoint runs …`. */
export function runsCommand(world: World): Command {
  return new Command("runs")
    .description("list, show and steer runs")
    .addCommand(listCommand(world))
    .addCommand(showCommand(world))
    .addCommand(childrenCommand(world))
    .addCommand(explainCommand(world))
    .addCommand(submitCommand(world))
    .addCommand(cancelCommand(world))
    .addCommand(pauseCommand(world))
    .addCommand(resumeCommand(world))
    .addCommand(migrateCommand(world))
    .addCommand(retryCommand(world))
    .addCommand(decideCommand(world));
}

/** `holdpoint answer …`. */
export function answerCommand(world: World): Command {
  return new Command("answer")
    .description("answer the question that a run waits with")
    .argument("<run>", "the run's id")
    .argument("<text>", "the answer")
    .option("--hold <n>", "the run's `hold` when the question was read: an answer to an older question is then refused")
    .addOption(jsonOption())
    .action(async (runId: string, text: string, options: CommonOptions & { hold?: string }) => {
      const hold = options.hold === undefined ? {} : { hold: readHold(options.hold) };
      await printRun(world, options, (client) => client.answer({ runId, text, ...hold }));
    });
}

interface ListOptions extends CommonOptions {
  readonly status?: string;
  readonly waitingFor?: string;
  readonly overdue?: boolean;
  readonly agent?: string;
  readonly externalRef?: string;
  readonly operation?: string;
  readonly parent?: string;
  readonly limit: number;
}

function listCommand(world: World): Command {
  return new Command("list")
    .description("runs, the newest first")
    .option("--status <statuses>", `one or more, separated by commas: ${Status.options.join(", ")}`)
    .option("--waiting-for <whom>", `a user, role:<name> or a service; or a kind: ${KINDS.join(", ")}`)
    .option("--overdue", "only those whose deadline, retry or look-up is due")
    .option("--agent <name>", "only this agent's, as name or name@version")
    .option("--parent <run>", "only those that this run has started")
    .option("--external-ref <ref>", "only those with an effect that is known by this name outside")
    .option("--operation <id>", "only the one with the call of this operation id")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action(async (options: ListOptions) => {
      const ask = (client: Client) => client.listRuns(filterOf(options));
      await askAndPrint(world, options, {
        ask,
        show: ({ items, next }, view) => showRuns(items, view) + andMore(next, view.out),
      });
    });
}

function filterOf({ status, waitingFor, overdue, agent, parent, externalRef, operation, limit }: ListOptions) {
  const [agentName = "", agentVersion] = agent?.split("@") ?? [];
  return {
    limit,
    ...(status === undefined ? {} : { status: status.split(",").map(readStatus) }),
    ...(waitingFor === undefined ? {} : whomOf(waitingFor)),
    ...(overdue === true ? { overdue } : {}),
    ...(agent === undefined ? {} : { agent: agentName }),
    ...(agentVersion === undefined ? {} : { agentVersion }),
    ...(parent === undefined ? {} : { parent }),
    ...(externalRef === undefined ? {} : { externalRef }),
    ...(operation === undefined ? {} : { operationId: operation }),
  };
}

type Kind = NonNullable<NonNullable<Run["waitingFor"]>["kind"]>;

function whomOf(whom: string): { readonly waitingForKind: Kind } | { readonly waitingFor: string } {
  // A member of the list is a kind.
  return KINDS.includes(whom) ? { waitingForKind: whom as Kind } : { waitingFor: whom };
}

function showCommand(world: World): Command {
  return new Command("show")
    .description("a run's page: for whom it waits and until when, what was last, what is next, and its timeline")
    .argument("<run>", "the run's id")
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions) => {
      await askAndPrint(world, options, { ask: (client) => readPage(client, runId), show: showRunPage });
    });
}

function childrenCommand(world: World): Command {
  return new Command("children")
    .description("the runs that a run has started, the oldest first: how each ended, or what it waits for")
    .argument("<run>", "the run's id")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions & { limit: number }) => {
      await askAndPrint(world, options, {
        ask: (client) => client.listChildren({ runId, limit: options.limit }),
        show: ({ items, next }, view) => showChildren(items, view) + andMore(next, view.out),
      });
    });
}

function explainCommand(world: World): Command {
  return new Command("explain")
    .description("why a run is not moving: the whole chain of evidence in words, and what would move it")
    .argument("<run>", "the run's id")
    .addOption(jsonOption())
    .action((runId: string, options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.explainRun({ runId }), show: showExplanation }),
    );
}

/** How many children a run's page names; `runs children` lists all. */
const CHILDREN_SHOWN = 20;

async function readPage(client: Client, runId: string): Promise<RunPage> {
  const run = await client.showRun({ runId });
  const timeline = await readAll((part) => client.showTimeline({ runId, ...part }));
  const messages = await readAll((part) => client.listMessages({ sessionId: run.sessionId, ...part }));
  const said = messages.findLast((message) => message.runId === runId && message.role === "assistant") ?? null;
  const children = await client.listChildren({ runId, limit: CHILDREN_SHOWN });
  return { run, children, timeline, said };
}

interface SubmitOptions extends CommonOptions {
  readonly session?: string;
  readonly input?: string;
  readonly instanceKey?: string;
}

async function givenBy(world: World, { input, instanceKey }: SubmitOptions) {
  return {
    ...(input === undefined ? {} : { input: await readJson(world, "--input", input) }),
    ...(instanceKey === undefined ? {} : { instanceKey }),
  };
}

function submitCommand(world: World): Command {
  return new Command("submit")
    .description("open a conversation and submit a run in it")
    .argument("<agent>", "the agent as name@version")
    .argument("<goal>", "what it is asked to do")
    .option("--session <id>", "a conversation that is there already")
    .option("--input <json>", "for a workflow or a task: what it is given, a JSON object (or @file)")
    .option("--instance-key <key>", "while a run of this agent is live under the same key, another is refused")
    .addOption(jsonOption())
    .action(async (agent: string, goal: string, options: SubmitOptions) => {
      const ref = readAgent(agent);
      const given = await givenBy(world, options);
      await printRun(world, options, async (client) => {
        const sessionId = options.session ?? (await client.createSession()).id;
        return client.submitRun({ sessionId, agent: ref, goal, ...given });
      });
    });
}

function cancelCommand(world: World): Command {
  return new Command("cancel")
    .description("ask a run to stop")
    .argument("<run>", "the run's id")
    .option("--reason <text>", "why")
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions & { reason?: string }) => {
      const { reason } = options;
      await printRun(world, options, (client) =>
        client.cancelRun({ runId, ...(reason === undefined ? {} : { reason }) }),
      );
    });
}

function pauseCommand(world: World): Command {
  return new Command("pause")
    .description("ask a run to pause: it starts nothing new, and its deadlines stand still")
    .argument("<run>", "the run's id")
    .addOption(jsonOption())
    .action((runId: string, options: CommonOptions) =>
      printRun(world, options, (client) => client.pauseRun({ runId })),
    );
}

function resumeCommand(world: World): Command {
  return new Command("resume")
    .description(
      "take a pause back; every deadline moves by the time that it took. A failed workflow goes on as a run of its own, which is shown",
    )
    .argument("<run>", "the run's id")
    .addOption(jsonOption())
    .action((runId: string, options: CommonOptions) =>
      printRun(world, options, (client) => client.resumeRun({ runId })),
    );
}

function migrateCommand(world: World): Command {
  return new Command("migrate")
    .description(
      "let a workflow's run go on in another version of its definition, if what it has done means the same there",
    )
    .argument("<run>", "the run's id")
    .requiredOption("--to <version>", "the version; a worker must have it beside the present one")
    .addOption(jsonOption())
    .action((runId: string, options: CommonOptions & { to: string }) =>
      printRun(world, options, (client) => client.migrateRun({ runId, version: options.to })),
    );
}

function retryCommand(world: World): Command {
  return new Command("retry")
    .description("do an ended run again, as a new run of the same line")
    .argument("<run>", "the run's id")
    .option("--idempotency-key <key>", "the same request again under the same key makes nothing new")
    .addOption(jsonOption())
    .action(async (runId: string, options: CommonOptions & { idempotencyKey?: string }) => {
      const { idempotencyKey } = options;
      await printRun(world, options, (client) =>
        client.retryRun({ runId }, idempotencyKey === undefined ? {} : { idempotencyKey }),
      );
    });
}

interface DecideOptions extends CommonOptions {
  readonly reason: string;
  readonly attempt?: string[];
  readonly result?: string;
  readonly externalRef?: string;
}

function decideCommand(world: World): Command {
  return new Command("decide")
    .description("decide what nobody but an operator can")
    .argument("<run>", "the run's id")
    .argument("<choice>", CHOICES.join(", "))
    .requiredOption("--reason <text>", "why; it is recorded")
    .option("--attempt <ids...>", "the open attempts that are meant (mark_done, not_established: one; terminate: all)")
    .option("--result <json>", "for mark_done: what happened, as the model is to be told it (or @file)")
    .option("--external-ref <ref>", "for mark_done: the other side's name for the effect")
    .addOption(jsonOption())
    .action(async (runId: string, text: string, options: DecideOptions) => {
      const { reason, attempt, result, externalRef } = options;
      const decision = {
        choice: readChoice(text),
        reason,
        ...(attempt === undefined ? {} : { attempts: attempt }),
        ...(result === undefined ? {} : { result: await readJson(world, "--result", result) }),
        ...(externalRef === undefined ? {} : { externalRef }),
      };
      await printRun(world, options, (client) => client.decideAsOperator({ runId, ...decision }));
    });
}

function printRun(world: World, options: CommonOptions, ask: (client: Client) => Promise<Run>): Promise<void> {
  return askAndPrint(world, options, { ask, show: showRun });
}

function readStatus(text: string): Run["status"] {
  const parsed = Status.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new UsageError(`--status: there is no status "${text}"; there are ${Status.options.join(", ")}`);
}

function readChoice(text: string): (typeof CHOICES)[number] {
  const choice = CHOICES.find((one) => one === text);
  if (choice !== undefined) return choice;
  throw new UsageError(`there is no choice "${text}"; there are ${CHOICES.join(", ")}`);
}

function readHold(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
  throw new UsageError(`--hold is "${text}": it must be the number that \`runs show --json\` gives as "hold"`);
}
