import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { RunNotice } from "@holdpoint/protocol";
import { waitFor } from "@holdpoint/testkit";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly notice: RunNotice;
}

/** How a receiver answers; one that answers nothing keeps the sender waiting. */
export type Answering = (response: ServerResponse, received: Received) => void;

/** A receiver of notices on this machine, over real HTTP. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
  /** How it answers from now on; 204 until this says something else. */
  answer(how: Answering): void;
  until(count: number): Promise<void>;
}

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answering =>
  (response) =>
    void response.writeHead(code, headers).end();

export async function openReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let how: Answering = status(204);
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (part: string) => {
      body += part;
    });
    request.on("end", () => {
      const each = { headers: request.headers, body, notice: RunNotice.parse(JSON.parse(body)) };
      received.push(each);
      how(response, each);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server on a port has an address of this shape.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    answer: (next) => {
      how = next;
    },
    async until(count) {
      await waitFor(() => received.length >= count, { deadlineMs: 10_000, what: `${count} notices` });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
