import { randomBytes } from "node:crypto";
import type { Delivery } from "@holdpoint/protocol";
import {
  type AddWebhookResult,
  addWebhook,
  type ControlDeliveryResult,
  changePolicy,
  disableWebhook,
  dismissDelivery,
  retryDelivery,
  type Store,
  type Webhook,
} from "@holdpoint/store";
import { findDelivery, listDeliveries, listWebhooks, readId } from "@holdpoint/store/read";
import { namesRefusedAddress } from "@holdpoint/upkeep";
import type { HandlerDeps } from "../deps.ts";
import { ApiProblem, notFound, refusedRule } from "../problem.ts";
import { pageRequest, showPage } from "../run-access.ts";
import type { Asked, Handlers } from "../serve.ts";
import { showDelivery, showWebhook } from "../show-webhook.ts";

const SECRET_BYTES = 32;

/** Who is told over HTTP when runs end or change. */
export function webhookHandlers({
  store,
}: HandlerDeps): Pick<
  Handlers,
  | "listWebhooks"
  | "addWebhook"
  | "changeWebhookPolicy"
  | "disableWebhook"
  | "listDeliveries"
  | "retryDelivery"
  | "dismissDelivery"
> {
  return {
    async listWebhooks({ query }) {
      return { body: showPage(await listWebhooks(store, pageRequest(query)), showWebhook) };
    },
    async addWebhook({ caller, body: { agent, ...said } }) {
      requireReachable(said.url);
      const secret = `whsec_${randomBytes(SECRET_BYTES).toString("base64url")}`;
      const added = await addWebhook(store, { ...said, agentName: agent ?? null, secret, by: caller.user });
      return { body: { webhook: showWebhook(addedOf(added)), secret } };
    },
    async changeWebhookPolicy({ caller, params, body }) {
      return { body: showWebhook(known(await changePolicy(store, { ...params, ...body, by: caller.user }))) };
    },
    async disableWebhook({ caller, params }) {
      return { body: showWebhook(known(await disableWebhook(store, { ...params, by: caller.user }))) };
    },
    async listDeliveries({ query: { state, webhook, runId, ...page } }) {
      const id = runId === undefined ? undefined : readId("run", runId);
      if (id === null) throw notFound("run");
      return {
        body: showPage(await listDeliveries(store, { state, webhook, runId: id }, pageRequest(page)), showDelivery),
      };
    },
    retryDelivery: async (asked) => ({ body: await control(store, asked, retryDelivery) }),
    dismissDelivery: async (asked) => ({ body: await control(store, asked, dismissDelivery) }),
  };
}

/** A name is judged when it is looked up, each time that something is sent; an address already here. */
function requireReachable(url: string): void {
  if (!namesRefusedAddress(new URL(url))) return;
  const message = "nothing is sent to that address: it is of this machine, its link, or a cloud's own service";
  throw new ApiProblem(400, "invalid_request", {
    detail: `body.url: ${message}`,
    mistakes: [{ path: "body.url", message }],
  });
}

function addedOf(added: AddWebhookResult): Webhook {
  switch (added.result) {
    case "added":
      return added.webhook;
    case "name_taken":
      throw refusedRule("webhook_exists");
    case "too_many":
      throw refusedRule("too_many_webhooks");
  }
}

function known(webhook: Webhook | null): Webhook {
  if (webhook === null) throw notFound("webhook");
  return webhook;
}

type Control = (
  store: Store,
  asked: { readonly deliveryId: string; readonly by: string; readonly note: string | null },
) => Promise<ControlDeliveryResult>;

async function control(
  store: Store,
  { caller, params, body }: Asked<"retryDelivery" | "dismissDelivery">,
  verb: Control,
): Promise<Delivery> {
  const deliveryId = readId("delivery", params.deliveryId);
  if (deliveryId === null) throw notFound("delivery");
  const { result } = await verb(store, { deliveryId, by: caller.user, note: body.note ?? null });
  if (result === "delivered") throw refusedRule("already_delivered");
  if (result === "webhook_disabled") throw refusedRule("webhook_disabled");
  const delivery = await findDelivery(store, deliveryId);
  if (delivery === null) throw notFound("delivery");
  return showDelivery(delivery);
}
