import type { Socket } from "node:net";
import { createTestDatabase, untilWaiting, waitFor } from "@holdpoint/testkit";
import pg from "pg";
import { afterAll, beforeAll, expect } from "vitest";
import { findViolations, openStore, type Store } from "../src/index.ts";
import { grantAll } from "./a-run.ts";

export type Verb<T> = (store: Store) => Promise<T>;

/** A database of its own for one test file, with a store, and connections to interfere from. */
export interface Bench {
  readonly url: string;
  readonly store: Store;
  /** A connection beside the store's. */
  readonly admin: pg.Client;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** A store with one connection that waits for locks without end, and the server process of that connection. */
  lonely(): Promise<Lonely>;
  /** The verb waits for the run's row; `meanwhile` runs on the connection that holds it and is committed before the verb goes on. */
  whileHeld<T>(runId: string, verb: Verb<T>, meanwhile: (holder: pg.Client) => Promise<unknown>): Promise<T>;
  /** The verb takes effect and its answer is lost with the connection. */
  answerLost<T>(runId: string, verb: Verb<T>): Promise<T>;
  /** The verb's connection is ended by the server before it took effect; it learns so after `instead` has. */
  cutBefore<T>(runId: string, verb: Verb<T>, instead: Verb<unknown>): Promise<T>;
  /** Both verbs have read and wait for the run's row, in this order, when it is let go. */
  inOrder<A, B>(runId: string, first: Verb<A>, second: Verb<B>): Promise<[A, B]>;
}

export interface Lonely extends AsyncDisposable {
  readonly store: Store;
  readonly pid: number;
  /** What the server sends is not seen until `hear`. */
  deafen(): void;
  hear(): void;
  /** Cuts the connection; the server does not notice before its statement has ended. */
  cut(): void;
}

interface Opened {
  readonly url: string;
  readonly store: Store;
  readonly admin: pg.Client;
}

/** Opens the bench before the file's tests, and looks for violated invariants after them. */
export function useBench(): Bench {
  const stack = new AsyncDisposableStack();
  let opened: Opened | null = null;
  const get = (): Opened => {
    if (opened === null) throw new Error("The bench is open only while tests run");
    return opened;
  };

  beforeAll(async () => {
    const { url } = stack.use(await createTestDatabase());
    const store = stack.use(openStore({ url }));
    opened = { url, store, admin: await connect(url, stack) };
    await grantAll(store);
  });

  afterAll(async () => {
    const violations = await findViolations(get().store);
    await stack.disposeAsync();
    expect(violations).toEqual([]);
  });

  const lonely = (): Promise<Lonely> => openLonely(get().url);
  const whileHeld = async <T>(runId: string, verb: Verb<T>, meanwhile: (holder: pg.Client) => Promise<unknown>) => {
    await using waiting = await lonely();
    await using held = await holdRun(get().url, runId);
    const late = verb(waiting.store);
    await reachesWait(get().admin, waiting.pid, late);
    await meanwhile(held.client);
    await held.release();
    return await late;
  };
  return {
    get url() {
      return get().url;
    },
    get store() {
      return get().store;
    },
    get admin() {
      return get().admin;
    },
    sql: async (text, values = []) => (await get().admin.query(text, [...values])).rows,
    lonely,
    whileHeld,
    async answerLost(runId, verb) {
      await using waiting = await lonely();
      await using held = await holdRun(get().url, runId);
      const sent = verb(waiting.store);
      await reachesWait(get().admin, waiting.pid, sent);
      waiting.deafen();
      await held.release();
      await untilIdle(get().admin, waiting.pid);
      waiting.cut();
      return await sent;
    },
    async cutBefore(runId, verb, instead) {
      await using earlier = await lonely();
      await using waiting = await lonely();
      await using held = await holdRun(get().url, runId);
      const other = instead(earlier.store);
      await reachesWait(get().admin, earlier.pid, other);
      const sent = verb(waiting.store);
      await reachesWait(get().admin, waiting.pid, sent);
      waiting.deafen();
      await get().admin.query("select pg_terminate_backend($1)", [waiting.pid]);
      await held.release();
      await other;
      waiting.hear();
      return await sent;
    },
    async inOrder(runId, first, second) {
      await using earlier = await lonely();
      await using later = await lonely();
      await using held = await holdRun(get().url, runId);
      const one = first(earlier.store);
      await reachesWait(get().admin, earlier.pid, one);
      const other = second(later.store);
      await reachesWait(get().admin, later.pid, other);
      await held.release();
      return [await one, await other];
    },
  };
}

/** How many deadlocks the server counts while the work is done, on a store of its own: a process reports at its end. */
export async function deadlocksOf(bench: Bench, work: Verb<unknown>): Promise<number> {
  const count = async (): Promise<number> => {
    const rows = await bench.sql("select deadlocks::int from pg_stat_database where datname = current_database()");
    return rows[0]?.deadlocks;
  };
  const before = await count();
  const store = openStore({ url: bench.url, applicationName: "deadlocks" });
  await work(store);
  await store[Symbol.asyncDispose]();
  const living = "select from pg_stat_activity where application_name = 'deadlocks'";
  const reported = async () => (await bench.sql(living)).length === 0;
  await waitFor(reported, { deadlineMs: 10_000, what: "the server processes to end" });
  return (await count()) - before;
}

/** Holds a run's row until it is released. */
export async function holdRun(url: string, runId: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  await client.query("select from holdpoint.runs where id = $1 for update", [runId]);
  return {
    client,
    release: async () => void (await client.query("commit")),
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** Resolves when the process has ended its statement. */
export function untilIdle(admin: pg.Client, pid: number): Promise<unknown> {
  const working = "select from pg_stat_activity where pid = $1 and state = 'active'";
  const idle = async () => (await admin.query(working, [pid])).rows.length === 0;
  return waitFor(idle, { deadlineMs: 10_000, what: `process ${pid} to end its statement` });
}

/** Resolves when the process waits for a lock; a verb that fails before that ends the waiting with its error. */
export async function reachesWait(admin: pg.Client, pid: number, verb: Promise<unknown>): Promise<void> {
  const ended = verb.then((result) => {
    throw new Error(`the verb did not wait, it answered ${JSON.stringify(result)}`);
  });
  const waiting = untilWaiting(admin, pid);
  await Promise.race([waiting, ended]);
  ended.catch(() => undefined); // from here on the caller has the verb's own promise
}

async function openLonely(url: string): Promise<Lonely> {
  const store = openStore({ url, maxConnections: 1 });
  const client = await store.pool.connect();
  client.on("error", () => undefined); // a connection that a test cuts
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await client.query("set lock_timeout = '20s'");
  client.release();
  const [row] = rows;
  if (row === undefined) throw new Error("pg_backend_pid() gave no row");
  // The socket is not part of the driver's types; nothing else can lose an answer on its way.
  const { connection } = client as unknown as { connection: { stream: Socket } };
  return {
    store,
    pid: row.pid,
    deafen: () => void connection.stream.pause(),
    hear: () => void connection.stream.resume(),
    cut: () => void connection.stream.destroy(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

async function connect(url: string, stack: AsyncDisposableStack): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  stack.defer(() => client.end());
  return client;
}
