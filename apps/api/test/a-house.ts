import type { AddressInfo } from "node:net";
import { type Client, createClient } from "@holdpoint/client";
import { openPublisher } from "@holdpoint/queue";
import { openStore } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { pino } from "pino";
import { aProvider, aRefundTool, askRefund, type Provider } from "../../../packages/runtime/test/a-provider.ts";
import { aDesk } from "../../../packages/runtime/test/desk.ts";
import { type Fleet, openFleet } from "../../../packages/runtime/test/fleet.ts";
import { assignTokenRoles, buildApi } from "../src/index.ts";

const TOKENS = [
  { token: "alice-token", user: "alice", roles: ["requester"] },
  // One person with two tokens, who may submit and is a manager.
  { token: "uma-web-token", user: "uma", roles: ["requester", "manager"] },
  { token: "uma-api-token", user: "uma", roles: ["requester", "manager", "finance"] },
  { token: "mona-token", user: "mona", roles: ["manager", "finance"] },
  { token: "max-token", user: "max", roles: ["manager", "finance"] },
  { token: "ulla-token", user: "ulla", roles: ["operator", "manager"] },
];

/** Two apis and a worker on one database, before a provider whose refunds a manager has to release, or finance large ones. */
export interface House extends AsyncDisposable {
  readonly fleet: Fleet;
  readonly provider: Provider;
  readonly urls: readonly [string, string];
  /** What both apis have logged. */
  readonly logged: readonly string[];
  /** The client of whoever has this token, at one of the two apis. */
  as(token: string, api?: 0 | 1): Client;
  /** A run that waits for the approval of these refunds of an order; they are made in one turn. */
  waiting(order: string, options?: { readonly amounts?: readonly string[]; readonly token?: string }): Promise<string>;
  /** The requests of a run that wait, with the hash of what they show. */
  cards(runId: string): Promise<readonly { readonly approvalId: string; readonly argsHash: string }[]>;
  /** How often money has moved for an order. */
  paid(order: string): number;
}

/** Opens it; when it is closed, no invariant may be broken in its database. */
export async function openHouse(): Promise<House> {
  const stack = new AsyncDisposableStack();
  const fleet = stack.use(await openFleet());
  await assignTokenRoles(fleet.store, TOKENS);
  const provider = aProvider(fleet);
  const refund = aRefundTool(provider, {
    effect: { key: { validForMs: 86_400_000 } },
    rules: [
      { name: "large", when: [{ argument: "amount", is: ">", value: "5000" }], ask: { roles: ["finance"] } },
      { name: "any", ask: { roles: ["manager"] } },
    ],
  });
  const agent = aDesk(
    [
      ({ prompt }) => {
        const [, order = "", amounts = ""] = /refund (\S+) of (\S+)/.exec(JSON.stringify(prompt)) ?? [];
        return {
          calls: amounts
            .replace(/[^0-9,]/g, "")
            .split(",")
            .map((amount) => askRefund(order, amount)),
        };
      },
      { text: "done" },
    ],
    [],
    { tools: [refund] },
  );
  await fleet.start(agent);
  const logged: string[] = [];
  const open = async (): Promise<string> => {
    const store = stack.use(openStore({ url: fleet.url }));
    const publisher = stack.use(openPublisher({ kind: "postgres", url: fleet.url }));
    const log = pino({ level: "info" }, { write: (line) => logged.push(line) });
    const app = await buildApi({ store, publisher, tokens: TOKENS, log });
    stack.defer(() => app.close());
    await app.listen({ host: "127.0.0.1", port: 0 });
    // A server that listens on TCP has an address of this form.
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  };
  const urls = [await open(), await open()] as const;
  const house: House = {
    fleet,
    provider,
    urls,
    logged,
    as: (token, api = 0) => createClient({ baseUrl: urls[api], token, timeoutMs: 10_000 }),
    waiting: async (order, { amounts = ["3000"], token = "alice-token" } = {}) => {
      const requester = house.as(token);
      const session = await requester.createSession();
      const goal = `refund ${order} of ${amounts.join(",")}`;
      const { name, version } = agent;
      const { id } = await requester.submitRun({ sessionId: session.id, agent: { name, version }, goal });
      const isWaiting = async () => (await requester.showRun({ runId: id })).status === "waiting_approval" || null;
      await waitFor(isWaiting, { deadlineMs: 20_000, what: "the run to ask" });
      return id;
    },
    cards: async (runId) => {
      const { items } = await house.as("ulla-token").listApprovals({ runId, state: ["pending"] });
      return items.map(({ id: approvalId, argsHash }) => ({ approvalId, argsHash }));
    },
    paid: (order) => provider.refunds.filter((each) => each.order === order).length,
    [Symbol.asyncDispose]: () => stack.disposeAsync().then(),
  };
  return house;
}
