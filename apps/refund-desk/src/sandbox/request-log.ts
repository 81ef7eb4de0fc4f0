/** One request of a payment endpoint. */
export interface LoggedRequest {
  readonly seq: number;
  /** When it had arrived, on the sandbox's clock. */
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly payment_intent: string | null;
  readonly idempotency_key: string | null;
  /** The rules it met. */
  readonly faults: readonly string[];
  /** The status that was sent; `null` when none was, or not yet. */
  readonly status: number | null;
}

/** Older requests are dropped. */
const MAX_LOGGED = 10_000;

/** The newest requests in the order they came, since the process started. */
export interface RequestLog {
  /** Gives the number under which the request's status is noted later. */
  readonly add: (request: Omit<LoggedRequest, "seq" | "status">) => number;
  readonly noteStatus: (seq: number, status: number) => void;
  readonly list: () => readonly LoggedRequest[];
}

export function createRequestLog(): RequestLog {
  const logged = new Map<number, LoggedRequest>();
  let seq = 0;
  return {
    add: (request) => {
      seq += 1;
      logged.set(seq, { seq, ...request, status: null });
      logged.delete(seq - MAX_LOGGED);
      return seq;
    },
    noteStatus: (noted, status) => {
      const request = logged.get(noted);
      if (request !== undefined) logged.set(noted, { ...request, status });
    },
    list: () => [...logged.values()],
  };
}
