import type { AddedWebhook, Delivery, Webhook } from "@holdpoint/protocol";
import type { z } from "zod";
import type { View } from "../context.ts";
import { type Column, renderTable } from "../table.ts";
import { local, localAndRelative, relative } from "../times.ts";
import { field } from "./run.ts";

const COLUMNS: readonly Column[] = [
  { title: "NAME", max: 30 },
  { title: "TELLS", max: 14 },
  { title: "OF", max: 20 },
  { title: "SINCE", max: 10 },
  { title: "URL", max: null },
];

const TELLS: Readonly<Record<Webhook["policy"], string>> = {
  done_only: "ends",
  state_changes: "changes",
  silent: "nothing",
};

/** Webhooks as a table. */
export function showWebhooks(webhooks: readonly Webhook[], { out, now }: View): string {
  if (webhooks.length === 0) return "no webhooks\n";
  const rows = webhooks.map(({ name, policy, agent, createdAt, url, disabled }) => [
    name,
    disabled === null ? TELLS[policy] : { text: "disabled", paint: out.colours.quiet },
    agent ?? "all agents",
    relative(createdAt, now),
    url,
  ]);
  return renderTable(COLUMNS, rows, out);
}

/** A webhook by itself. */
export function showWebhook(webhook: Webhook, { out, now }: View): string {
  const { name, url, policy, agent, createdAt, createdBy, changedAt, changedBy, disabled } = webhook;
  const lines: readonly (readonly [string, string | null])[] = [
    ["Url", url],
    ["Tells", `${TELLS[policy]} of ${agent === null ? "all runs" : `runs of ${agent}`} (${policy})`],
    ["Added", `by ${createdBy}, ${localAndRelative(createdAt, now)}`],
    ["Changed", changedAt === createdAt ? null : `by ${changedBy}, ${localAndRelative(changedAt, now)}`],
    ["Disabled", disabled === null ? null : `by ${disabled.by}, ${localAndRelative(disabled.at, now)}`],
  ];
  const fields = lines.map(([label, text]) => (text === null ? "" : field(label, text, out)));
  return `${out.colours.title(name)}\n${fields.join("")}`;
}

/** A new webhook, and what its receiver checks signatures with. */
export function showAddedWebhook({ webhook, secret }: z.output<typeof AddedWebhook>, view: View): string {
  const { out } = view;
  const hint = out.colours.quiet("Give it to the receiver now: it is shown this once.");
  return `${showWebhook(webhook, view)}${field("Secret", secret, out)}${hint}\n`;
}

const DELIVERY_COLUMNS: readonly Column[] = [
  { title: "DELIVERY", max: 30 },
  { title: "WEBHOOK", max: 16 },
  { title: "STATE", max: 10 },
  { title: "TRIES", max: 5 },
  { title: "WHAT", max: null, wraps: true },
];

/** Deliveries as a table. */
export function showDeliveries(deliveries: readonly Delivery[], view: View): string {
  if (deliveries.length === 0) return "no deliveries\n";
  const rows = deliveries.map((delivery) => [
    delivery.id,
    delivery.webhook,
    { text: delivery.state, paint: paintOf(delivery.state, view.out.colours) },
    String(delivery.attempts),
    whatOf(delivery, view),
  ]);
  return renderTable(DELIVERY_COLUMNS, rows, view.out);
}

/** One delivery in one line. */
export function showDelivery(delivery: Delivery, view: View): string {
  return `${delivery.id} to ${delivery.webhook}: ${delivery.state}; ${whatOf(delivery, view)}\n`;
}

function whatOf({ runId, status, outcome, state, nextAt, lastErrorCode, changes, createdAt }: Delivery, { now }: View) {
  const told = `${runId} ${status}${outcome === null ? "" : ` (${outcome})`}, ${local(createdAt)}`;
  const failed = state === "delivered" || lastErrorCode === null ? "" : `; last answer ${lastErrorCode}`;
  const next = nextAt === null ? "" : `; next ${relative(nextAt, now)}`;
  const [last] = changes;
  const why = last?.note == null ? "" : `: ${last.note}`;
  return `${told}${failed}${next}${last === undefined ? "" : `; ${last.change} by ${last.by}${why}`}`;
}

function paintOf(state: Delivery["state"], { good, bad, quiet, waiting }: View["out"]["colours"]) {
  switch (state) {
    case "delivered":
      return good;
    case "dead":
      return bad;
    case "pending":
      return waiting;
    case "dismissed":
      return quiet;
  }
}
