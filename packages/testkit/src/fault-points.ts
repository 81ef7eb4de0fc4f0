// Fault points: the places at which a program may fail, counted as it passes them.
//
// A point stands directly before something leaves the process (a statement, a request, a tool's call) and directly after
// its answer came. Between two neighbouring points nothing is sent and nothing is stored, so that a process which dies
// there leaves the same world as one that dies at the point before. To play every place, count first, then fail at each:
//
//   const points = openFaultPoints();                       // counts only
//   const store = points.store(openStore({ url }));
//   const worker = await createWorker({ store, agents: [points.agent(agent)], … });
//   …                                                       // let the run end; points.passed.length is N
//   openFaultPoints({ at: n })                              // in a process of its own, for n = 1 … N: killed there
//
// Lease renewals are left out: a timer sends them, so they have no place in the order. They have a pool of their own. A
// poll of a pending effect has no points either; what it sends through a wrapped fetch has.

import type { Pool } from "pg";
import type { Fault, Sending } from "./fault-point.ts";
import { faultyFetch } from "./faulty-fetch.ts";
import { faultyModel, type Model } from "./faulty-model.ts";
import { faultyPool } from "./faulty-pool.ts";
import { faultyTool, type Tool } from "./faulty-tool.ts";

export type { Fault, FaultPoint, Sending } from "./fault-point.ts";

export interface FaultPointsOptions {
  /** Where the fault is: the point's number, or a name, whose first passing is meant. Null or left out: only counted. */
  readonly at?: number | string | null;
  /** What happens there; `killProcess` if left out. */
  readonly fault?: Fault;
}

/** Counts the points of one program. What is wrapped behaves as before, except at the point that was chosen. */
export interface FaultPoints {
  /** The names of the points that were passed, in order. */
  readonly passed: readonly string[];
  /** A point of one's own, for example within a test's tool. */
  reach(name: string): Promise<void>;
  /** `statement:<verb>:sent` and `:answered` around each statement of the store's shared pool. */
  store<S extends { readonly pool: Pool }>(store: S): S;
  /** The same around `query` of another pool. Statements of clients that are taken out of it are not seen. */
  pool(pool: Pool): Pool;
  /** `tool:<name>:before` and `:after` around each execution, `look_up:<name>:before` and `:after` around each look-up. */
  tool<T extends Tool>(tool: T): T;
  /** `model:before`, `model:streaming` (its first part has come) and `model:after` (its last has) of each request. */
  model<M extends Model>(model: M): M;
  /** The model and all tools of an agent. */
  agent<A extends { readonly model: Model; readonly tools: ReadonlyMap<string, Tool> }>(agent: A): A;
  /** `<name>:request` and `<name>:reply` around each request; `provider` if no name is given. */
  fetch(fetch: typeof globalThis.fetch, name?: string): typeof globalThis.fetch;
}

/** Opens a count; see `FaultPoints`. */
export function openFaultPoints({ at, fault = killProcess }: FaultPointsOptions = {}): FaultPoints {
  const passed: string[] = [];
  let isOver = false;
  const reach = async (name: string, sending: Sending | null = null): Promise<void> => {
    passed.push(name);
    if (isOver || (at !== passed.length && at !== name)) return;
    isOver = true;
    await fault({ number: passed.length, name, sending });
  };
  const tool = <T extends Tool>(each: T): T => faultyTool(each, reach);
  const model = <M extends Model>(each: M): M => faultyModel(each, reach);
  const pool = (each: Pool): Pool => faultyPool(each, reach);
  return {
    passed,
    reach: (name) => reach(name),
    store: (store) => ({ ...store, pool: pool(store.pool) }),
    pool,
    tool,
    model,
    agent: (agent) => ({
      ...agent,
      model: model(agent.model),
      tools: new Map([...agent.tools].map(([name, each]) => [name, tool(each)])),
    }),
    fetch: (fetch, name = "provider") => faultyFetch(fetch, { name, reach }),
  };
}

/** The process ends as if the machine had lost it: no handler runs, nothing is sent any more. */
export function killProcess(): Promise<never> {
  process.kill(process.pid, "SIGKILL");
  return hang(); // whatever the process still does until the signal arrives, it does not pass this point
}

/** Nothing comes any more, and nothing fails. */
export function hang(): Promise<never> {
  return new Promise(() => undefined);
}

/** @throws {Error} ECONNRESET, always: nobody knows what the other side has done. */
export function breakConnection(): never {
  throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
}
