import type { Client } from "@holdpoint/client";
import { DeliveryState, NoticePolicy } from "@holdpoint/protocol";
import { Command } from "commander";
import type { World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";
import { showAddedWebhook, showDeliveries, showDelivery, showWebhook, showWebhooks } from "../show/webhooks.ts";
import { andMore, askAndPrint, type CommonOptions, jsonOption, limitOption } from "./shared.ts";

/** `holdpoint webhooks …`. */
export function webhooksCommand(world: World): Command {
  return new Command("webhooks")
    .description("who is told over HTTP when runs end or change")
    .addCommand(listCommand(world))
    .addCommand(addCommand(world))
    .addCommand(policyCommand(world))
    .addCommand(disableCommand(world))
    .addCommand(deliveriesCommand(world))
    .addCommand(settleCommand(world, "retry", "send a delivery at once, with all of its attempts before it"))
    .addCommand(settleCommand(world, "dismiss", "send a delivery never again"));
}

const POLICIES = NoticePolicy.options.join(", ");

function listCommand(world: World): Command {
  return new Command("list")
    .description("webhooks, the oldest first, those that were disabled included")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action((options: CommonOptions & { limit: number }) =>
      askAndPrint(world, options, {
        ask: (client) => client.listWebhooks({ limit: options.limit }),
        show: ({ items, next }, view) => showWebhooks(items, view) + andMore(next, view.out),
      }),
    );
}

function addCommand(world: World): Command {
  return new Command("add")
    .description("tell somebody of what happens to runs from now on; the secret that signs it is shown this once")
    .argument("<name>", "the webhook's name, like billing")
    .argument("<url>", "where it is told, by POST; https, or http for localhost")
    .option("--policy <policy>", `what it is told: ${POLICIES}`)
    .option("--agent <name>", "only runs of this agent")
    .addOption(jsonOption())
    .action((name: string, url: string, options: CommonOptions & { policy?: string; agent?: string }) => {
      const { policy, agent } = options;
      const webhook = {
        name,
        url,
        ...(policy === undefined ? {} : { policy: readPolicy(policy) }),
        ...(agent === undefined ? {} : { agent }),
      };
      return askAndPrint(world, options, { ask: (client) => client.addWebhook(webhook), show: showAddedWebhook });
    });
}

function readPolicy(text: string) {
  const { data, success } = NoticePolicy.safeParse(text);
  if (success) return data;
  throw new UsageError(`the policy is "${text}": it must be one of ${POLICIES}`);
}

function policyCommand(world: World): Command {
  return new Command("policy")
    .description("change what a webhook is told of what happens from now on")
    .argument("<name>", "the webhook's name")
    .argument("<policy>", `one of ${POLICIES}`)
    .addOption(jsonOption())
    .action((name: string, text: string, options: CommonOptions) => {
      const policy = readPolicy(text);
      const ask = (client: Client) => client.changeWebhookPolicy({ name, policy });
      return askAndPrint(world, options, { ask, show: showWebhook });
    });
}

function disableCommand(world: World): Command {
  return new Command("disable")
    .description("tell a webhook nothing any more, for good; what it was still to be told is dismissed in your name")
    .argument("<name>", "the webhook's name")
    .addOption(jsonOption())
    .action((name: string, options: CommonOptions) =>
      askAndPrint(world, options, { ask: (client) => client.disableWebhook({ name }), show: showWebhook }),
    );
}

interface DeliveriesOptions extends CommonOptions {
  readonly limit: number;
  readonly state?: string;
  readonly webhook?: string;
  readonly run?: string;
}

function deliveriesCommand(world: World): Command {
  return new Command("deliveries")
    .description("what webhooks were told, or are to be, the latest first")
    .option("--state <state>", `only those: ${DeliveryState.options.join(", ")}`)
    .option("--webhook <name>", "only those of one webhook")
    .option("--run <run>", "only those about one run")
    .addOption(limitOption())
    .addOption(jsonOption())
    .action((options: DeliveriesOptions) => {
      const { limit, state, webhook, run } = options;
      const filter = {
        limit,
        ...(state === undefined ? {} : { state: readState(state) }),
        ...(webhook === undefined ? {} : { webhook }),
        ...(run === undefined ? {} : { runId: run }),
      };
      return askAndPrint(world, options, {
        ask: (client) => client.listDeliveries(filter),
        show: ({ items, next }, view) => showDeliveries(items, view) + andMore(next, view.out),
      });
    });
}

function readState(text: string) {
  const { data, success } = DeliveryState.safeParse(text);
  if (success) return data;
  throw new UsageError(`--state is "${text}": it must be one of ${DeliveryState.options.join(", ")}`);
}

function settleCommand(world: World, verb: "retry" | "dismiss", summary: string): Command {
  return new Command(verb)
    .description(summary)
    .argument("<delivery>", "the delivery's id")
    .option("--note <text>", "why; kept with who did it")
    .addOption(jsonOption())
    .action((deliveryId: string, options: CommonOptions & { note?: string }) => {
      const asked = { deliveryId, ...(options.note === undefined ? {} : { note: options.note }) };
      const ask = (client: Client) => (verb === "retry" ? client.retryDelivery(asked) : client.dismissDelivery(asked));
      return askAndPrint(world, options, { ask, show: showDelivery });
    });
}
