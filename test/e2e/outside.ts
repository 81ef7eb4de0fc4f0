// The world outside a fleet under test: an HTTP service with an append-only ledger, whose replies a test may hold back.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";

export interface Outside extends AsyncDisposable {
  readonly url: string;
  /** What was done, in order; nothing is de-duplicated here. */
  readonly ledger: { readonly operationId: string; readonly order: string }[];
  /** What was asked for, in order. */
  readonly looks: string[];
  /** Replies to requests about this order are held back from now on. */
  hold(order: string): void;
  /** Answers what is held back, and everything after it. */
  release(order: string): void;
  /** Waits until so many requests about this order have come. */
  untilAsked(order: string, times?: number): Promise<void>;
}

export async function openOutside(): Promise<Outside> {
  const ledger: Outside["ledger"] = [];
  const looks: string[] = [];
  const held = new Map<string, (() => void)[]>();
  const asked: string[] = [];

  const answer = (order: string, response: ServerResponse, body: object): void => {
    const send = () => void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    const waiting = held.get(order);
    if (waiting === undefined) send();
    else waiting.push(send);
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://outside");
    const order = url.searchParams.get("order") ?? "";
    const operationId = url.searchParams.get("operation") ?? "";
    if (url.pathname === "/find") {
      const found = ledger.some((entry) => entry.operationId === operationId);
      return void response.end(JSON.stringify({ found }));
    }
    asked.push(order);
    if (url.pathname === "/send") ledger.push({ operationId, order });
    else looks.push(order);
    answer(order, response, { order });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // Listening on a port of its own.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    ledger,
    looks,
    hold: (order) => void held.set(order, []),
    release: (order) => {
      const waiting = held.get(order) ?? [];
      held.delete(order);
      for (const send of waiting) send();
    },
    untilAsked: async (order, times = 1) => {
      const isAsked = () => asked.filter((each) => each === order).length >= times;
      await waitFor(isAsked, { deadlineMs: 30_000, what: `${times} requests about ${order}` });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
