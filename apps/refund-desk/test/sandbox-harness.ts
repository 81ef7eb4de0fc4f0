import { z } from "zod";
import { createPayments, type Payments } from "../src/payments.ts";
import { createSandboxControl, type SandboxControl } from "../src/sandbox/sandbox-control.ts";
import { startSandbox } from "../src/sandbox/server.ts";

/** A sandbox with its clients, for one test; disposing stops it. */
export interface TestSandbox extends AsyncDisposable {
  readonly url: string;
  readonly payments: Payments;
  /** Faults, pending refunds, the clock and the log. */
  readonly control: SandboxControl;
  readonly get: (path: string) => Promise<unknown>;
  /** How many replies are held back now. */
  readonly countHeld: () => Promise<number>;
  /** The counted requests that sent a refund. */
  readonly listRefundPosts: () => Promise<readonly unknown[]>;
  readonly post: (path: string, body: unknown) => Promise<{ readonly status: number; readonly body: unknown }>;
  readonly seed: (id: string, amount: number, amountRefunded?: number) => Promise<void>;
}

const Holds = z.object({ held: z.array(z.unknown()) });
const Requests = z.object({ requests: z.array(z.looseObject({ method: z.string(), path: z.string() })) });

const START_MS = Date.parse("2026-03-02T10:00:00Z");

export async function openTestSandbox(dataFile: string | null = null): Promise<TestSandbox> {
  let ids = 0;
  const errors: unknown[] = [];
  const sandbox = await startSandbox({
    port: 0,
    dataFile,
    nowMs: () => START_MS,
    newId: (prefix) => {
      ids += 1;
      return `${prefix}_${ids}`;
    },
    onError: (error) => errors.push(error),
  });
  const post = async (path: string, body: unknown) => {
    const response = await fetch(new URL(path, sandbox.url), { method: "POST", body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  };
  const get = async (path: string): Promise<unknown> => (await fetch(new URL(path, sandbox.url))).json();
  return {
    url: sandbox.url,
    control: createSandboxControl(sandbox.url),
    payments: createPayments({ url: new URL(sandbox.url), key: "sk_test_desk" }),
    get,
    countHeld: async () => Holds.parse(await get("/sandbox/holds")).held.length,
    listRefundPosts: async () =>
      Requests.parse(await get("/sandbox/requests")).requests.filter(
        ({ method, path }) => method === "POST" && path === "/v1/refunds",
      ),
    post,
    seed: async (id, amount, amountRefunded = 0) => {
      const response = await fetch(new URL("/v1/test/payment_intents", sandbox.url), {
        method: "POST",
        headers: { authorization: "Bearer sk_test_seed" },
        body: new URLSearchParams({
          id,
          amount: String(amount),
          amount_refunded: String(amountRefunded),
          currency: "eur",
        }),
      });
      if (!response.ok) throw new Error(await response.text());
    },
    [Symbol.asyncDispose]: async () => {
      await sandbox.close();
      if (errors.length > 0) throw new AggregateError(errors, "the sandbox failed to store a request");
    },
  };
}
