import { z } from "zod";
import { sha256 } from "../retail-store.ts";

/** Which replies to writes are held back. A share of 0 holds none from now on; what is already held stays held. */
export const HoldRule = z.strictObject({
  seed: z.string().min(1).max(100),
  /** Share of executed writes, 0 to 1. */
  share: z.number().min(0).max(1),
  /** After this time a held reply leaves by itself. */
  maxHoldMs: z.number().int().min(1).max(600_000).default(30_000),
});
export type HoldRule = z.infer<typeof HoldRule>;

/** A write that is committed and journalled while its caller still waits for the reply. */
export type HeldReply = {
  readonly operationId: string;
  readonly task: string;
  readonly tool: string;
  /** The process that asked, from its Worker-Pid header; null where it sent none. */
  readonly workerPid: number | null;
};

export type HoldEnd = "released" | "client_gone" | "timed_out";
export type HoldCounts = Readonly<Record<"held" | HoldEnd, number>>;

export type ReplyHolds = {
  setRule(rule: HoldRule): void;
  /** Resolves when the reply may leave, or when there is nobody left to send it to; null: it was not held. */
  hold(write: HeldReply & { readonly ordinal: number }, clientGone: AbortSignal): Promise<HoldEnd | null>;
  list(): readonly HeldReply[];
  /** Lets one reply go, or all of them; returns how many. */
  release(operationId: string | null): number;
  counts(): HoldCounts;
};

/**
 * Whether a rule holds a write's reply: a pure function of the seed and the write's place in its task, so the same seed
 * chooses the same writes whatever operation ids a run mints.
 */
export function isHeldBy(rule: HoldRule, write: { readonly task: string; readonly ordinal: number }): boolean {
  const digits = sha256(`${rule.seed}|${write.task}|${write.ordinal}`).slice(0, 13); // 52 bits, exact in a double
  return Number.parseInt(digits, 16) / 2 ** 52 < rule.share;
}

/** The replies that are held back, in this process's memory only: they belong to its open connections. */
export function createReplyHolds(): ReplyHolds {
  let rule: HoldRule | null = null;
  const held = new Map<HeldReply, (end: HoldEnd) => void>();
  const counts = { held: 0, released: 0, client_gone: 0, timed_out: 0 };

  return {
    setRule(next) {
      rule = next;
    },
    async hold({ ordinal, ...reply }, clientGone) {
      if (rule === null || !isHeldBy(rule, { task: reply.task, ordinal })) return null;
      if (clientGone.aborted) return null;
      counts.held += 1;
      const end = await waitForEnd(rule.maxHoldMs, clientGone, (finish) => held.set(reply, finish));
      held.delete(reply);
      counts[end] += 1;
      return end;
    },
    list: () => [...held.keys()],
    release(operationId) {
      const chosen = [...held].filter(([reply]) => operationId === null || reply.operationId === operationId);
      for (const [, finish] of chosen) finish("released");
      return chosen.length;
    },
    counts: () => ({ ...counts }),
  };
}

async function waitForEnd(
  maxHoldMs: number,
  clientGone: AbortSignal,
  register: (finish: (end: HoldEnd) => void) => void,
): Promise<HoldEnd> {
  const { promise, resolve } = Promise.withResolvers<HoldEnd>();
  const timer = setTimeout(() => resolve("timed_out"), maxHoldMs);
  const onGone = () => resolve("client_gone");
  clientGone.addEventListener("abort", onGone, { once: true });
  register(resolve);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    clientGone.removeEventListener("abort", onGone);
  }
}
