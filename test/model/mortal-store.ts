// A store whose process can lose its connections, lose single answers, and die.

import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { openStore, type Store } from "@holdpoint/store";
import type pg from "pg";

/**
 * What one statement meets: it is never sent; it takes effect and its answer is lost; or its connection breaks while it is
 * under way, so that it may take effect at any time afterwards, or never.
 */
export type Fault = "unsent" | "unanswered" | "cut";

export interface MortalStore extends AsyncDisposable {
  readonly store: Store;
  /** How the server shows its connections. */
  readonly name: string;
  /** How many statements have failed for a reason that leaves open whether they took effect. */
  failures(): number;
  /** One of the next statements meets a fault; those armed before it come first. */
  arm(fault: Fault): void;
  /** Takes back what was armed and has met nothing. */
  disarm(): void;
  /** Breaks all connections. */
  cut(): void;
  /** As if the process were killed: nothing is sent any more, and no answer is heard. */
  die(): void;
  /** Resolves when the process dies. */
  readonly died: Promise<void>;
}

/** Locks are waited for so briefly that waiting in vain happens in every sequence. */
const LOCK_TIMEOUT_MS = 30;
const CONNECTIONS = 4;

/** Opens the store of one process. */
export function openMortalStore(database: {
  readonly url: string;
  readonly name: string;
  readonly tenantId: string;
}): MortalStore {
  const url = new URL(database.url);
  url.searchParams.set("lock_timeout", String(LOCK_TIMEOUT_MS));
  const real = openStore({
    url: url.href,
    maxConnections: CONNECTIONS,
    tenantId: database.tenantId,
    applicationName: database.name,
  });
  const sockets = new Set<Socket>();
  real.pool.on("connect", (client) => {
    const socket = socketOf(client);
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    client.on("error", () => undefined); // a connection that is cut while it is idle; its pool drops it
  });
  const { promise: died, resolve: tell } = Promise.withResolvers<void>();
  const armed: Fault[] = [];
  let isDead = false;
  let failures = 0;

  const query = async (config: pg.QueryConfig): Promise<pg.QueryResult> => {
    if (isDead) return silence();
    try {
      const answer = await meet(real.pool, config, armed.shift());
      return isDead ? await silence() : answer;
    } catch (error) {
      if (isDead) return silence();
      if (isAmbiguous(error)) failures += 1;
      throw error;
    }
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    store: {
      ...real,
      pool: new Proxy(real.pool, { get: (target, key) => (key === "query" ? query : Reflect.get(target, key)) }),
    },
    name: database.name,
    failures: () => failures,
    arm: (fault) => void armed.push(fault),
    disarm: () => void armed.splice(0),
    cut,
    die() {
      isDead = true;
      cut();
      tell();
    },
    died,
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  };
}

async function meet(pool: pg.Pool, config: pg.QueryConfig, fault: Fault | undefined): Promise<pg.QueryResult> {
  if (fault === undefined) return pool.query(config);
  if (fault === "unsent") throw reset();
  const client = await pool.connect();
  try {
    const answer = client.query(config);
    if (fault === "cut") {
      const settled = Promise.allSettled([answer]);
      await nextTurn(); // by then it has been written to the socket
      socketOf(client).destroy();
      await settled;
    } else {
      await answer;
    }
    throw reset();
  } finally {
    client.release(true);
  }
}

/** Every error but one that the server itself has said, of a kind that leaves nothing behind. */
function isAmbiguous(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return !/^(22|23|40|54|55)/.test(code);
}

function reset(): Error {
  return Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
}

function silence(): Promise<never> {
  return new Promise(() => undefined);
}

/** The socket is not part of the driver's types; nothing else can lose an answer on its way. */
function socketOf(client: pg.PoolClient): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}
