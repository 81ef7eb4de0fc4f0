import { z } from "zod";
import type { FaultRule } from "./faults.ts";
import type { LoggedRequest } from "./request-log.ts";

const LIMIT_MS = 10_000;

const Armed = z.object({ rules: z.array(z.looseObject({ id: z.string(), left: z.int().nullable() })) });
const Logged = z.object({
  seq: z.int(),
  at: z.string(),
  method: z.string(),
  path: z.string(),
  payment_intent: z.string().nullable(),
  idempotency_key: z.string().nullable(),
  faults: z.array(z.string()),
  status: z.int().nullable(),
});
const Log = z.object({ requests: z.array(Logged), has_more: z.boolean() });

/** A rule that is armed, with how many requests will still meet it (`null`: all). */
export type ArmedRule = z.output<typeof Armed>["rules"][number];

/** What tests ask of a running sandbox, in this process or another. All of it throws when the sandbox refuses. */
export interface SandboxControl {
  /** Arms rules behind those that are there; gives all that are armed. */
  readonly addFaults: (...rules: readonly FaultRule[]) => Promise<readonly ArmedRule[]>;
  readonly listFaults: () => Promise<readonly ArmedRule[]>;
  /** Removes all rules and ends the delays that they had begun. */
  readonly clearFaults: () => Promise<void>;
  /** The requests of the payment endpoints, oldest first: when each came, and how it was answered. */
  readonly listLog: () => Promise<readonly LoggedRequest[]>;
  /** The next refund of this payment is accepted as pending. */
  readonly acceptAsPending: (paymentIntent: string) => Promise<void>;
  readonly settle: (refund: string, status: "succeeded" | "failed") => Promise<void>;
  /** Moves the sandbox's clock forward. */
  readonly advanceClock: (ms: number) => Promise<void>;
}

export function createSandboxControl(url: string): SandboxControl {
  const ask = async <T>(path: string, schema: z.ZodType<T>, body?: unknown): Promise<T> => {
    const response = await fetch(new URL(`/sandbox/${path}`, url), {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`the payment sandbox answered ${path} with ${response.status}: ${text}`);
    return schema.parse(JSON.parse(text));
  };
  const tell = async (path: string, body: unknown): Promise<void> => {
    await ask(path, z.unknown(), body);
  };
  return {
    addFaults: async (...rules) => (await ask("faults", Armed, { rules })).rules,
    listFaults: async () => (await ask("faults", Armed)).rules,
    clearFaults: () => tell("faults/clear", {}),
    listLog: async () => {
      const requests: LoggedRequest[] = [];
      for (;;) {
        const page = await ask(`request-log?after=${requests.at(-1)?.seq ?? 0}`, Log);
        requests.push(...page.requests);
        if (!page.has_more) return requests;
      }
    },
    acceptAsPending: (payment_intent) => tell("pending", { payment_intent }),
    settle: (refund, status) => tell("settle", { refund, status }),
    advanceClock: (advance_ms) => tell("clock", { advance_ms }),
  };
}
