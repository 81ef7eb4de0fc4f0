import type { Store } from "@holdpoint/store";

/** What a statement brings. */
interface Answer {
  readonly rows: Record<string, unknown>[];
}

/** A statement on its way: whose it is, and what sends it. */
export interface Sending {
  /** The verb of the statement: "claim_runs". */
  readonly verb: string;
  /** What it is sent with. */
  readonly values: readonly unknown[];
  readonly send: () => Promise<Answer>;
}

/** The same store, but for what `meet` does to its statements: it sends each, or fails, or changes the answer. */
export function faultyStore(store: Store, meet: (sending: Sending) => Promise<Answer>): Store {
  const query = (config: { readonly name?: string; readonly text: string; values: unknown[] }) => {
    const verb = (config.name ?? "").replace(/^holdpoint_/, "").replace(/_[0-9a-f]{8}$/, "");
    return meet({ verb, values: config.values, send: () => store.pool.query(config) });
  };
  const pool = new Proxy(store.pool, { get: (target, key) => (key === "query" ? query : Reflect.get(target, key)) });
  return { ...store, pool };
}

/** How a connection breaks. */
export function brokenConnection(): Error {
  return Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
}
