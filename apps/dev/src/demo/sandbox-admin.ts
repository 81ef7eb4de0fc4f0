import { z } from "zod";

const LedgerRow = z.object({
  seq: z.number().int(),
  refund: z.string(),
  payment_intent: z.string(),
  amount: z.number().int(),
  currency: z.string(),
  idempotency_key: z.string().nullable(),
  moved_at: z.string(),
});
const Ledger = z.object({ rows: z.array(LedgerRow), has_more: z.literal(false) });
const Holds = z.object({ held: z.array(z.object({ payment_intent: z.string(), refund: z.string() })) });
const Requests = z.object({
  requests: z.array(
    z.object({ method: z.string(), path: z.string(), idempotency_key: z.string().nullable(), count: z.number().int() }),
  ),
});

/** A refund whose money has moved. */
export type LedgerRow = z.output<typeof LedgerRow>;
/** How often one endpoint was asked with one idempotency key. */
export type RequestCount = z.output<typeof Requests>["requests"][number];

/** What the payment sandbox tells about itself, and what it can be asked to do to its clients. */
export interface SandboxAdmin {
  /** All refunds that moved money, oldest first. */
  ledger(): Promise<readonly LedgerRow[]>;
  /** Requests of the payment endpoints since the sandbox started. */
  requests(): Promise<readonly RequestCount[]>;
  /** Replies that wait although the money has moved. */
  heldReplies(): Promise<readonly { readonly payment_intent: string; readonly refund: string }[]>;
  /** The next refund of this payment moves the money at once and keeps its reply back. */
  holdNextReply(paymentIntent: string): Promise<void>;
}

const LIMIT_MS = 5_000;

/** Talks to the sandbox's own endpoints. Its methods throw when the sandbox does not answer as it should. */
export function openSandboxAdmin(url: string, signal: AbortSignal): SandboxAdmin {
  const ask = async <T>(path: string, schema: z.ZodType<T>, body?: unknown): Promise<T> => {
    const response = await fetch(`${url}/sandbox/${path}`, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]),
    });
    if (!response.ok) throw new Error(`the payment sandbox answered /sandbox/${path} with status ${response.status}`);
    return schema.parse(await response.json());
  };
  return {
    ledger: async () => (await ask("ledger", Ledger)).rows,
    requests: async () => (await ask("requests", Requests)).requests,
    heldReplies: async () => (await ask("holds", Holds)).held,
    holdNextReply: async (payment_intent) => {
      await ask("hold", z.unknown(), { payment_intent });
    },
  };
}
