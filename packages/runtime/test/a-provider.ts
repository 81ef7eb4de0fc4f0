import { canonicalJson, type JsonValue } from "@holdpoint/core";
import { loseAndRecover, markExited } from "@holdpoint/store";
import { z } from "zod";
import {
  type Agent,
  defineTool,
  type Effect,
  type LookUp,
  type SettlementDefinition,
  type Tool,
  ToolError,
  type ToolRule,
} from "../src/index.ts";
import { brokenConnection, faultyStore } from "./faulty-store.ts";
import type { Fleet } from "./fleet.ts";

const DAY_MS = 86_400_000;

/** What goes wrong with a request: the way to the provider breaks before or after it has acted, or it says no. */
export type Fault = "cut_before" | "cut_after" | "throttled" | "unavailable" | "refused";

/** What a provider is told to do with a charge. */
interface RefundInput {
  readonly order: string;
  /** In minor units. */
  readonly amount: string;
  readonly currency: string;
}

type Arguments = RefundInput & Readonly<Record<string, string>>;

/** A payment provider of this process. Money moves once per key, for as long as it remembers that one. */
export interface Provider {
  /** Every request that has arrived, with its key and its bytes. */
  readonly requests: { readonly operationId: string; readonly body: string }[];
  /** The money that has moved. */
  readonly refunds: { readonly ref: string; readonly operationId: string; readonly order: string; amount: string }[];
  /** Keys of requests for which no committed intent was in the database. */
  readonly unannounced: string[];
  /** What befalls the next requests, one after the other; then all goes well. */
  faults: Fault[];
  /** It can be reached neither by requests nor by look-ups. */
  isAway: boolean;
  /** What a request or a look-up waits for before it is answered, once it has acted. */
  answersAfter: Promise<unknown> | null;
  /** Told whenever something waits for that. */
  onWaiting: () => void;
  send(input: RefundInput, operationId: string): Promise<{ readonly refund: string }>;
  find(operationId: string): Promise<LookUp<JsonValue>>;
}

/** A charge of 100.00, which leaves room for a part of it to be paid back more than once. */
const CHARGE_MINOR = 10_000;

export function aProvider(fleet: Fleet, { remembersForMs = DAY_MS } = {}): Provider {
  const known = new Map<string, { readonly refund: string; readonly atMs: number }>();
  const left = new Map<string, number>();
  const answer = async (): Promise<void> => {
    if (provider.answersAfter === null) return;
    provider.onWaiting();
    await provider.answersAfter;
  };
  const pay = async ({ order, amount }: RefundInput, operationId: string): Promise<string> => {
    const { nowMs, intents } = await readDatabase(fleet, operationId);
    if (intents !== 1) provider.unannounced.push(operationId);
    const before = known.get(operationId);
    if (before !== undefined && nowMs - before.atMs < remembersForMs) return before.refund;
    const rest = (left.get(order) ?? CHARGE_MINOR) - Number(amount);
    if (rest < 0) throw new ToolError("more than was paid", { errorClass: "refused", code: "amount_too_large" });
    left.set(order, rest);
    const refund = `re_${provider.refunds.length + 1}`;
    provider.refunds.push({ ref: refund, operationId, order, amount });
    known.set(operationId, { refund, atMs: nowMs });
    return refund;
  };
  const provider: Provider = {
    requests: [],
    refunds: [],
    unannounced: [],
    faults: [],
    isAway: false,
    answersAfter: null,
    onWaiting: () => undefined,
    send: async (input, operationId) => {
      const fault = provider.isAway ? "unavailable" : provider.faults.shift();
      if (fault === "cut_before") throw brokenConnection();
      if (fault === "unavailable") throw new ToolError("down", { errorClass: "transient", code: "http_503" });
      provider.requests.push({ operationId, body: canonicalJson({ ...input }) });
      if (fault === "throttled") throw new ToolError("slow down", { errorClass: "throttled", code: "http_429" });
      if (fault === "refused") throw new ToolError("no", { errorClass: "refused", code: "card_closed" });
      const refund = await pay(input, operationId);
      if (fault === "cut_after") throw brokenConnection();
      await answer();
      return { refund };
    },
    find: async (operationId) => {
      if (provider.isAway) throw new ToolError("down", { errorClass: "transient", code: "http_503" });
      await answer();
      const found = provider.refunds.find((refund) => refund.operationId === operationId);
      return found === undefined
        ? { answer: "did_not_happen" }
        : { answer: "happened", output: { refund: found.ref } satisfies JsonValue };
    },
  };
  return provider;
}

/** The database's clock, and how many committed intents there are of an operation that nobody has settled. */
async function readDatabase(fleet: Fleet, operationId: string): Promise<{ nowMs: number; intents: number }> {
  const { rows } = await fleet.store.pool.query(
    `select holdpoint.clock() as at, (select count(*)::int from holdpoint.attempts a
       join holdpoint.calls c on c.run_id = a.run_id and c.id = a.call_id
       where c.operation_id = $1 and a.ended_at is null) as intents`,
    [operationId],
  );
  return { nowMs: rows[0].at.getTime(), intents: rows[0].intents };
}

interface Terms {
  readonly effect: Effect;
  readonly rules?: readonly ToolRule[];
  readonly retries?: number;
  readonly timeoutMs?: number;
  readonly settlement?: SettlementDefinition<Arguments, JsonValue>;
  /** What the tool gives, where that is not just the provider's name for the refund. */
  readonly output?: (refund: string) => JsonValue;
}

let services = 0;

/** The tool `refund` before a provider; it takes no argument that it does not know. */
export function aRefundTool(provider: Provider, { effect, output, ...terms }: Terms): Tool {
  services += 1;
  const base = {
    name: "refund",
    description: "Pays a part of a charge back",
    input: z.strictObject({
      order: z.string(),
      amount: z.string().regex(/^[1-9][0-9]{0,6}$/),
      currency: z.string().default("EUR"),
    }),
    service: `provider-${services}`,
    timeoutMs: 10_000,
    externalRef: (given: JsonValue) => (given as { readonly refund: string }).refund,
    execute: async (input: Arguments, { operationId }: { readonly operationId: string }): Promise<JsonValue> => {
      const { refund } = await provider.send(input, operationId);
      return output?.(refund) ?? { refund };
    },
    ...terms,
    retry: { firstDelayMs: 1, retries: terms.retries ?? 1 },
  };
  if (typeof effect !== "object" || effect.lookUp === undefined) {
    return defineTool({ ...base, effect: effect as "unsafe" | { readonly key: { readonly validForMs: number } } });
  }
  const reconcile = (_input: Arguments, { operationId }: { readonly operationId: string }) =>
    provider.find(operationId);
  return defineTool({ ...base, effect: { ...effect, lookUp: effect.lookUp }, reconcile });
}

/** A call of it in a script. */
export function askRefund(order: string, amount: string, id?: string) {
  return { tool: "refund", input: { order, amount }, ...(id === undefined ? {} : { id }) };
}

/** A worker whose process can be killed: from then on nothing of what it does reaches the database. */
export async function startMortal(fleet: Fleet, agent: Agent): Promise<{ kill(runId: string): Promise<void> }> {
  let isDead = false;
  // Of an error of this kind nobody hopes that it passes: what is left of the process ends.
  const killed = () => Promise.reject(new RangeError("the process was killed"));
  const store = faultyStore(fleet.store, ({ send }) => (isDead ? killed() : send()));
  const worker = await fleet.start(agent, { store, renewMs: 100 });
  return {
    kill: async (runId) => {
      isDead = true;
      // It takes no wake-up any more either. Nobody waits for it: it may hang in its tool.
      void worker.drain(1);
      await markExited(fleet.store, worker.id);
      await recover(fleet, runId);
    },
  };
}

/** What a sweep does with a run whose worker is gone. */
async function recover(fleet: Fleet, runId: string): Promise<void> {
  const { run } = await fleet.load(runId);
  await loseAndRecover(fleet.store, [{ run, reason: "process_exited" }], { kind: "sweeper", id: "test" });
}
