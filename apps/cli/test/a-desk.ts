import type { AddressInfo } from "node:net";
import { assignTokenRoles, buildApi } from "@holdpoint/api";
import { openPublisher } from "@holdpoint/queue";
import { type Agent, createWorker, defineAgent, defineTool, type Runnable, ToolError } from "@holdpoint/runtime";
import { claimRuns, newId, openStore, registerWorker, type Store, showId, transitionOne } from "@holdpoint/store";
import { findRun, readId } from "@holdpoint/store/read";
import { createTestDatabase, scriptedModel } from "@holdpoint/testkit";
import { pino } from "pino";
import { z } from "zod";

export const TOKENS = {
  alice: "alice-token",
  mona: "mona-token",
  max: "max-token",
  fay: "fay-token",
  finn: "finn-token",
  olga: "olga-token",
  ci: "ci-bot-token",
} as const;

/** An api that listens and a worker that works, on a database of their own. */
export interface Desk extends AsyncDisposable {
  readonly baseUrl: string;
  readonly store: Store;
  /** The worker ends as one does that was asked to. */
  drainWorker(): Promise<void>;
  /** A worker that does nothing has the run, which waits for a manager; gives its shown id. */
  claimIdly(runId: string): Promise<string>;
}

/**
 * An agent that does what its goal says: `pay` needs a manager, or two of finance if it is `much`, `ask` asks which
 * order is meant, `break` ends up with an operator. Others may be beside it.
 */
export async function openDesk(others: readonly Runnable[] = []): Promise<Desk> {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url, maxConnections: 6 }));
  const queue = { kind: "postgres", url } as const;
  const publisher = stack.use(openPublisher(queue, { limitMs: 10_000 }));
  const log = pino({ level: "silent" });
  const worker = await createWorker({
    store,
    queue,
    agents: [clerk(), ...others],
    slots: 4,
    leaseMs: 15_000,
    renewMs: 5_000,
    log,
  });
  let drained: Promise<void> | null = null;
  const drainWorker = (): Promise<void> => {
    drained ??= worker.drain(5_000);
    return drained;
  };
  stack.defer(drainWorker);
  const tokens = [
    { token: TOKENS.alice, user: "alice", roles: ["requester"] },
    { token: TOKENS.mona, user: "mona", roles: ["manager"] },
    { token: TOKENS.max, user: "max", roles: ["manager"] },
    { token: TOKENS.fay, user: "fay", roles: ["finance"] },
    { token: TOKENS.finn, user: "finn", roles: ["finance"] },
    { token: TOKENS.olga, user: "olga", roles: ["operator"] },
    { token: TOKENS.ci, user: "ci-bot", roles: ["task_runner"] },
  ];
  await assignTokenRoles(store, tokens);
  const app = await buildApi({ store, publisher, tokens, log });
  stack.defer(() => app.close());
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo; // a TCP server's address
  return {
    store,
    baseUrl: `http://127.0.0.1:${port}`,
    drainWorker,
    claimIdly: (runId) => claimIdly(store, runId),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Nobody hears of the run before it is claimed: no wake-up is published for it. */
async function claimIdly(store: Store, shownId: string): Promise<string> {
  const runId = readId("run", shownId) ?? "";
  const view = await findRun(store, runId);
  if (view === null) throw new Error(`there is no ${shownId}`);
  const requested = { type: "DeadlinePassed", remaining: null, onDeadline: "continue" } as const;
  await transitionOne(store, { run: view.run, events: [requested], actor: { kind: "sweeper", id: "test" } });
  const workerId = newId();
  const process = { host: "elsewhere", pid: 1, agents: [{ name: "clerk", version: "1" }], slots: 1, leaseMs: 600_000 };
  await registerWorker(store, { id: workerId, ...process });
  const claimed = await claimRuns(store, { runIds: [runId], workerId, progressMs: 600_000, mayTakeSuspect: true });
  if (claimed.length !== 1) throw new Error(`${shownId} was not claimed`);
  return showId("worker", workerId);
}

/** What a model might write to whoever has to decide: it moves no cursor and imitates nothing. */
const DOUBTFUL = "It is \u001b[32mapproved\u001b[0m already.\nState           approved";

const FINANCE = { roles: ["finance"], deadlineMs: 7_200_000 };

function clerk(): Agent {
  const pay = defineTool({
    name: "pay",
    description: "Pays",
    input: z.object({ amount: z.string().regex(/^\d+\.\d\d$/), iban: z.string().default("NO93 8601") }),
    effect: { key: { validForMs: 60_000 } },
    rules: [
      { name: "never", when: [{ argument: "amount", is: ">", value: "9999.00" }], deny: "That is too much to pay." },
      {
        name: "much_money",
        when: [{ argument: "amount", is: ">", value: "1000.00" }],
        ask: { roles: ["finance"], quorum: 2 },
      },
      {
        name: "over_limit",
        ask: { roles: ["manager"], answer: z.object({ paid: z.string() }), escalation: [FINANCE] },
      },
    ],
    presentation: { redact: ["iban"], risk: { level: "high", reversible: false } },
    execute: async ({ amount }) => ({ paid: amount }),
  });
  const fail = defineTool({
    name: "fail",
    description: "Fails",
    input: z.object({}),
    effect: "read",
    retry: { retries: 0 },
    execute: async (): Promise<string> => {
      throw new ToolError("It is down", { errorClass: "transient", code: "down" });
    },
  });
  const model = scriptedModel([
    ({ prompt }) => {
      const said = JSON.stringify(prompt.filter(({ role }) => role === "user"));
      if (said.includes("ask")) return { text: "Which order?" };
      if (said.includes("break")) return { calls: [{ tool: "fail", input: {} }] };
      if (said.includes("much")) return { text: DOUBTFUL, calls: [{ tool: "pay", input: { amount: "1200.00" } }] };
      return { calls: [{ tool: "pay", input: { amount: "120.00" } }] };
    },
    { text: "It is done." },
  ]);
  return defineAgent({
    name: "clerk",
    version: "1",
    model,
    instructions: "You pay.",
    tools: [pay, fail],
    complete: (reply) => (reply.endsWith("?") ? null : { kind: "succeeded" }),
  });
}
