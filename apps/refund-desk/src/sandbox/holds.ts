import type { ServerResponse } from "node:http";

/** A reply that waits although the money has moved. */
export interface HeldReply {
  readonly paymentIntent: string;
  readonly refund: string;
  readonly idempotencyKey: string | null;
}

/** How a wait ended: the reply may go out, its connection is to be cut, or the client has left. */
export type HoldEnd = "released" | "cut" | "gone";

/** Armed holds and the replies they hold back. */
export interface Holds {
  readonly arm: (paymentIntent: string, count: number) => void;
  /** Uses up one armed hold of this payment, if there is one. */
  readonly take: (paymentIntent: string) => boolean;
  readonly wait: (reply: HeldReply, response: ServerResponse) => Promise<HoldEnd>;
  /** Ends the waits of one payment, or of all with `null`; returns how many. */
  readonly release: (paymentIntent: string | null, end: "released" | "cut") => number;
  readonly keyInFlight: (key: string) => boolean;
  readonly list: () => { readonly armed: Readonly<Record<string, number>>; readonly held: readonly HeldReply[] };
}

export function createHolds(): Holds {
  const armed = new Map<string, number>();
  const held = new Map<HeldReply, (end: HoldEnd) => void>();
  return {
    arm: (paymentIntent, count) => {
      armed.set(paymentIntent, (armed.get(paymentIntent) ?? 0) + count);
    },
    take: (paymentIntent) => {
      const left = armed.get(paymentIntent) ?? 0;
      if (left === 0) return false;
      if (left === 1) armed.delete(paymentIntent);
      else armed.set(paymentIntent, left - 1);
      return true;
    },
    wait: (reply, response) =>
      new Promise((resolve) => {
        const end = (how: HoldEnd): void => {
          held.delete(reply);
          resolve(how);
        };
        held.set(reply, end);
        // The client may have left before this line; then no "close" will come.
        if (response.destroyed) end("gone");
        else response.once("close", () => end("gone"));
      }),
    release: (paymentIntent, how) => {
      const ending = [...held].filter(([reply]) => paymentIntent === null || reply.paymentIntent === paymentIntent);
      for (const [, end] of ending) end(how);
      return ending.length;
    },
    keyInFlight: (key) => [...held.keys()].some((reply) => reply.idempotencyKey === key),
    list: () => ({ armed: Object.fromEntries(armed), held: [...held.keys()] }),
  };
}
