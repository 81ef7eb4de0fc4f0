// One working process of the sweep: the refund desk's agent on the runtime's loop, with fault points at all that leaves
// the process. Its modules are loaded before it is needed; then it works as it is told over its channel.

import { once } from "node:events";
import {
  createClerk,
  createPayments,
  createRefundAgent,
  openOrders,
  readPolicy,
} from "../../apps/refund-desk/src/index.ts";
import { openClaimGroup } from "../../packages/runtime/src/claim-group.ts";
import { type Agent, type Log, systemClock, type Tool } from "../../packages/runtime/src/index.ts";
import { keepLease } from "../../packages/runtime/src/lease.ts";
import { openServiceBoard } from "../../packages/runtime/src/service-board.ts";
import { openStragglers } from "../../packages/runtime/src/stragglers.ts";
import { progressMs, workRun } from "../../packages/runtime/src/work-run.ts";
import {
  openCommitGroup,
  openStore,
  registerAgent,
  registerWorker,
  retireWorker,
  type Store,
} from "../../packages/store/src/index.ts";
import {
  breakConnection,
  type Fault,
  type FaultPoints,
  killProcess,
  openFaultPoints,
} from "../../packages/testkit/src/fault-points.ts";
import type { Order, PlannedFault, Said } from "./messages.ts";

/** Tests move the clock by minutes, to the next look-up: a lease outlasts that, and needs no renewal within a play. */
const LEASE_MS = 60 * 60 * 1_000;
/** With TEST_LOG=1 the workers say what they do. */
const say = (line: object): void => {
  if (process.env.TEST_LOG === "1") process.stderr.write(`${JSON.stringify(line)}\n`);
};
const log: Log = { debug: say, info: say, warn: say, error: say };
const REALLY_FETCH = globalThis.fetch;

interface Desk {
  /** Works on the run if it is to be had; the status in which it was given back. */
  take(runId: string): Promise<string | null>;
  close(): Promise<void>;
}

type Opening = Extract<Order, { do: "open" }>;

let points: FaultPoints = openFaultPoints();
let desk: Desk | null = null;

process.on("message", (order: Order) => {
  obey(order).then(
    (status) => tell({ said: "done", passed: points.passed, status }),
    (error: unknown) => tell({ said: "failed", error: String(error) }),
  );
});
await tell({ said: "ready" });
await once(process, "disconnect");

async function obey(order: Order): Promise<string | null> {
  switch (order.do) {
    case "open":
      points = openFaultPoints({ at: order.fault?.at ?? null, fault: faultOf(order.fault) });
      desk = await openDesk(order);
      return null;
    case "take":
      return desk === null ? null : desk.take(order.runId);
    case "close": {
      const closing = desk;
      desk = null;
      await closing?.close();
      return null;
    }
  }
}

function faultOf(planned: PlannedFault | null): Fault {
  return async (point) => {
    await tell({ said: "fault", point });
    if (planned?.mode === "kill") await killProcess();
    breakConnection();
  };
}

/** As a worker's start: agents and worker are registered, then work may come. */
async function openDesk(opening: Opening): Promise<Desk> {
  const { workerId, databaseUrl } = opening;
  const stack = new AsyncDisposableStack();
  try {
    const store = points.store(stack.use(openStore({ url: databaseUrl, maxConnections: 2 })));
    const agent = stack.use(await openAgent(opening)).agent;
    const { name, version } = agent;
    await registerAgent(store, { name, version, tools: [] });
    const begunAtMs = systemClock.monotonicMs();
    const registration = { id: workerId, host: "chaos", pid: process.pid, agents: [{ name, version }], slots: 1 };
    await registerWorker(store, { ...registration, leaseMs: LEASE_MS });
    return openLoop({ store, agent, workerId, begunAtMs, stack });
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** The agent with its orders; opening them (schema, policy) is no part of the run and has no points. */
async function openAgent({ databaseUrl, sandboxUrl, offers }: Opening): Promise<AsyncDisposable & { agent: Agent }> {
  const hasKeys = offers === "key_and_look_up";
  globalThis.fetch = points.fetch(hasKeys ? REALLY_FETCH : fetchWithoutKeys);
  const orders = await openOrders(databaseUrl, () => undefined);
  const pool = points.pool(orders.pool);
  const payments = createPayments({ url: new URL(sandboxUrl), key: "sk_test_chaos" });
  const policy = await readPolicy(orders.pool);
  const agent = createRefundAgent({ model: createClerk(), orders: { pool }, payments, policy });
  return {
    agent: points.agent(hasKeys ? agent : withoutKeys(agent)),
    [Symbol.asyncDispose]: () => orders[Symbol.asyncDispose]().then(),
  };
}

function fetchWithoutKeys(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const headers = new Headers(init?.headers);
  headers.delete("idempotency-key");
  return REALLY_FETCH(input, { ...init, headers });
}

/** The same agent, whose refunds rest on the look-up alone. */
function withoutKeys(agent: Agent): Agent {
  const tools = [...agent.tools].map(([name, tool]): [string, Tool] => [
    name,
    name === "send_refund" && tool.effect.kind === "effect"
      ? { ...tool, effect: { ...tool.effect, keyValidForMs: null } }
      : tool,
  ]);
  return { ...agent, tools: new Map(tools) };
}

/** The worker's desk without its queue: what a wake-up leads to, claim by claim. */
function openLoop(parts: {
  readonly store: Store;
  readonly agent: Agent;
  readonly workerId: string;
  readonly begunAtMs: number;
  readonly stack: AsyncDisposableStack;
}): Desk {
  const { store, agent, workerId, begunAtMs, stack } = parts;
  const clock = systemClock;
  const lease = keepLease({ store, workerId, leaseMs: LEASE_MS, renewMs: LEASE_MS / 3, clock, log, begunAtMs });
  const never = new AbortController().signal;
  const shared = { store, lease, clock, log, workerId, agent, draining: never, drained: never };
  const stragglers = openStragglers();
  // The play starts no children, and there is no queue to tell of anything.
  const announce = async (): Promise<void> => undefined;
  const findRunnable = () => null;
  const context = {
    ...shared,
    findRunnable,
    group: openCommitGroup(store),
    services: openServiceBoard(),
    stragglers,
    announce,
  };
  const claims = openClaimGroup({ ...shared, progressMs: progressMs({ agent }) });
  return {
    take: async (runId) => {
      const claimed = await claims.claim({ runId, version: 1 });
      if (claimed === null) return null;
      try {
        const worked = await workRun(context, claimed.loaded);
        return worked.result === "given" ? worked.run.state.status : null;
      } finally {
        claimed.end();
      }
    },
    close: async () => {
      await stragglers.idle();
      lease.close();
      try {
        await retireWorker(store, workerId);
      } finally {
        await stack.disposeAsync();
      }
    },
  };
}

/** Resolves when it is on its way: what a process said before it was killed is heard. */
function tell(message: Said): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}
