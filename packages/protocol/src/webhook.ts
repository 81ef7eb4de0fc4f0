import { STATUSES } from "@holdpoint/core";
import { z } from "zod";
import { DeliveryId, Instant, RunId, WebhookId } from "./ids.ts";
import { AgentRef } from "./run.ts";

export const WebhookName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, { error: "must be a-z, 0-9 and -, at most 64, a letter first" })
  .describe("A webhook, by name");

export const NoticePolicy = z
  .enum(["done_only", "state_changes", "silent"])
  .describe("What it is told: ends of runs; every changed status; nothing");

/** The header by whose value a receiver knows a delivery that comes again. */
export const DELIVERY_HEADER = "idempotency-key";

const LONGEST_URL = 2_000;

/** Hosts of this machine itself, as a URL names them. */
const LOCAL_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Whether a URL is of the machine that sends. */
export function namesThisMachine({ hostname }: URL): boolean {
  return LOCAL_HOSTS.has(hostname);
}

/** What is wrong with where a webhook is to be told; null if nothing is. */
function urlMistake(text: string): string | null {
  if (!URL.canParse(text)) return "must be a URL, like https://example.com/holdpoint";
  const url = new URL(text);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && namesThisMachine(url)))
    return "must be https: (http: is for localhost alone)";
  if (url.username !== "" || url.password !== "") return "must not name a user or a password";
  return url.hash === "" ? null : "must not have a fragment (#…)";
}

const Url = z
  .string()
  .max(LONGEST_URL)
  .superRefine((text, context) => {
    const mistake = urlMistake(text);
    if (mistake !== null) context.addIssue({ code: "custom", message: mistake });
  })
  .describe("Where it is told, by POST");

export const NewWebhook = z.strictObject({
  name: WebhookName,
  url: Url,
  policy: NoticePolicy.default("done_only"),
  agent: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Only runs of the agent of this name; every agent's if left out"),
});

/** Who is told over HTTP when runs end or change. */
export const Webhook = z
  .object({
    id: WebhookId,
    name: WebhookName,
    url: z.string(),
    policy: NoticePolicy,
    agent: z.string().nullable().describe("Only runs of this agent are told; null: every agent's"),
    createdAt: Instant,
    createdBy: z.string(),
    changedAt: Instant,
    changedBy: z.string().describe("Who changed the policy last"),
    disabled: z.object({ at: Instant, by: z.string() }).nullable(),
  })
  .meta({ id: "Webhook" });
export type Webhook = z.output<typeof Webhook>;

/** A new webhook, and what signs its notices. */
export const AddedWebhook = z.object({
  webhook: Webhook,
  secret: z.string().describe("Signs what is sent. It is shown this once"),
});

export const DeliveryState = z.enum(["pending", "delivered", "dead", "dismissed"]);

/** One notice to one webhook, and what became of it. */
export const Delivery = z
  .object({
    id: DeliveryId,
    webhook: WebhookName,
    runId: RunId,
    version: z.number().int().describe("The run's version that is told"),
    status: z.enum(STATUSES).describe("The run's status then"),
    outcome: z.string().nullable(),
    state: DeliveryState,
    attempts: z.number().int().describe("How often it was sent, since somebody asked for it to be sent again"),
    nextAt: Instant.nullable().describe("When it is sent next, unless an attempt that is under way comes through"),
    lastStatus: z.number().int().nullable().describe("The HTTP status of the last answer; null: there was none"),
    lastErrorCode: z.string().nullable().describe("Why it was not delivered last"),
    createdAt: Instant,
    deliveredAt: Instant.nullable(),
    changes: z
      .array(
        z.object({
          change: z.enum(["retried", "dismissed"]),
          by: z.string(),
          note: z.string().nullable(),
          at: Instant,
        }),
      )
      .describe("What people did to it, the latest first"),
  })
  .meta({ id: "Delivery" });
export type Delivery = z.output<typeof Delivery>;

/** What a webhook is sent: one version of a run, without anything that was asked, called or brought. */
export const RunNotice = z.object({
  deliveryId: DeliveryId.describe("The same in every attempt, and in the header `idempotency-key`"),
  runId: RunId,
  parentId: RunId.nullable().describe("The run that has started this one"),
  agent: AgentRef,
  status: z.enum(STATUSES),
  outcome: z.enum(["succeeded", "partial", "blocked"]).nullable().describe("What a completed run achieved"),
  reason: z.string().nullable().describe("Why that and no more, or why it ended"),
  waitingFor: z.object({ kind: z.string(), principal: z.string() }).nullable(),
  version: z.number().int().describe("Grows with every change of the run: an older one never undoes a newer one"),
  at: Instant,
});
export type RunNotice = z.output<typeof RunNotice>;
