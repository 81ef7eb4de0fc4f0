import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createDelays } from "./delays.ts";
import { createFaults } from "./faults.ts";
import { createHolds } from "./holds.ts";
import { openJournal } from "./journal.ts";
import { createRequestCounts } from "./request-counts.ts";
import { createRequestLog } from "./request-log.ts";
import type { SandboxState } from "./sandbox-request.ts";
import { serveRequest } from "./serve-request.ts";

export interface SandboxOptions {
  /** 0 picks a free one. */
  readonly port: number;
  /** The journal's file; `null` keeps everything in memory. */
  readonly dataFile: string | null;
  readonly nowMs: () => number;
  /** A new, never used id with this prefix. */
  readonly newId: (prefix: string) => string;
  /** Told of a request that could not be stored; its client gets a 500. */
  readonly onError: (error: unknown) => void;
}

export interface RunningSandbox {
  readonly port: number;
  readonly url: string;
  /** Cuts all connections, also those whose reply is held back or delayed, and closes the file. */
  readonly close: () => Promise<void>;
}

/**
 * Starts the payment sandbox on the loopback address.
 *
 * @throws {Error} the port is taken, or the file cannot be opened or is no journal.
 */
export async function startSandbox(options: SandboxOptions): Promise<RunningSandbox> {
  const journal = openJournal(options.dataFile);
  const state: SandboxState = {
    journal,
    holds: createHolds(),
    delays: createDelays(),
    faults: createFaults(),
    counts: createRequestCounts(),
    log: createRequestLog(),
    pendingNext: new Set(),
    newId: options.newId,
  };
  const nowMs = () => options.nowMs() + journal.book.clockAheadMs;
  const server = createServer((request, response) => {
    // What fails here is the connection: its client is gone or was cut off, and nobody else waits for it.
    serveRequest(state, { request, response, nowMs, onError: options.onError }).catch(() => response.destroy());
  });
  try {
    await listen(server, options.port);
  } catch (error) {
    journal.close();
    throw error;
  }
  // A server that listens on a TCP port has an address of this type.
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    state.delays.close();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
    journal.close();
  };
  return { port, url: `http://127.0.0.1:${port}`, close };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}
