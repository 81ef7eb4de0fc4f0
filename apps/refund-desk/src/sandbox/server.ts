import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  getHealth,
  getHolds,
  getLedger,
  getRequests,
  postClock,
  postHold,
  postPending,
  postRelease,
  postSettle,
} from "./admin-api.ts";
import { createHolds } from "./holds.ts";
import { openJournal } from "./journal.ts";
import { createRequestCounts } from "./request-counts.ts";
import type { Handler, Reply, SandboxState } from "./sandbox-request.ts";
import { createRefund, getPaymentIntent, getRefund, listRefunds, seedPaymentIntent } from "./stripe-api.ts";
import { stripeError } from "./stripe-error.ts";

const MAX_BODY_BYTES = 64 * 1_024;

const ROUTES: readonly { readonly method: "GET" | "POST"; readonly path: RegExp; readonly handler: Handler }[] = [
  { method: "POST", path: /^\/v1\/refunds$/, handler: createRefund },
  { method: "GET", path: /^\/v1\/refunds$/, handler: listRefunds },
  { method: "GET", path: /^\/v1\/refunds\/([^/]+)$/, handler: getRefund },
  { method: "GET", path: /^\/v1\/payment_intents\/([^/]+)$/, handler: getPaymentIntent },
  { method: "POST", path: /^\/v1\/test\/payment_intents$/, handler: seedPaymentIntent },
  { method: "GET", path: /^\/sandbox\/health$/, handler: getHealth },
  { method: "GET", path: /^\/sandbox\/ledger$/, handler: getLedger },
  { method: "GET", path: /^\/sandbox\/requests$/, handler: getRequests },
  { method: "GET", path: /^\/sandbox\/holds$/, handler: getHolds },
  { method: "POST", path: /^\/sandbox\/hold$/, handler: postHold },
  { method: "POST", path: /^\/sandbox\/release$/, handler: postRelease },
  { method: "POST", path: /^\/sandbox\/pending$/, handler: postPending },
  { method: "POST", path: /^\/sandbox\/settle$/, handler: postSettle },
  { method: "POST", path: /^\/sandbox\/clock$/, handler: postClock },
];

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
  /** Cuts all connections, also those whose reply is held back, and closes the file. */
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
    counts: createRequestCounts(),
    pendingNext: new Set(),
    newId: options.newId,
  };
  const server = createServer((request, response) => {
    // What fails here is the connection: its client is gone or was cut off, and nobody else waits for it.
    serve(state, { request, response, ...options }).catch(() => response.destroy());
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
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
    journal.close();
  };
  return { port, url: `http://127.0.0.1:${port}`, close };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly nowMs: () => number;
  readonly onError: (error: unknown) => void;
}

async function serve(state: SandboxState, exchange: Exchange): Promise<void> {
  const requestId = state.newId("req");
  const body = await readBody(exchange.request);
  let reply: Reply;
  try {
    reply = answer(state, exchange, { body, requestId });
  } catch (error) {
    exchange.onError(error);
    // A failed write of the journal: nothing was applied, so this says "nobody knows" as Stripe's own 500 does.
    reply = stripeError(500, { type: "api_error", message: "The sandbox could not store the request." });
  }
  if (reply.hold !== undefined) {
    const end = await state.holds.wait(reply.hold, exchange.response);
    if (end === "cut") exchange.response.destroy();
    if (end !== "released") return;
  }
  send(exchange, reply, requestId);
}

function answer(
  state: SandboxState,
  { request, nowMs }: Exchange,
  { body, requestId }: { readonly body: string | null; readonly requestId: string },
): Reply {
  const method = request.method ?? "";
  const [path = "", query = ""] = (request.url ?? "").split("?", 2);
  const idempotencyKey = headerOf(request, "idempotency-key");
  const isPayment = path.startsWith("/v1/");
  if (isPayment) state.counts.add({ method, path, idempotency_key: idempotencyKey });
  const refused = isPayment ? refuseKey(request) : null;
  if (refused !== null) return refused;
  if (body === null) return stripeError(413, { message: `The body is larger than ${MAX_BODY_BYTES} bytes.` });
  if (isPayment && body !== "" && !isForm(request)) {
    return stripeError(400, {
      message: "Invalid request (check that your POST content type is application/x-www-form-urlencoded).",
    });
  }
  for (const route of ROUTES) {
    const match = route.method === method ? route.path.exec(path) : null;
    if (match === null) continue;
    const id = match[1] ?? "";
    const now = nowMs() + state.journal.book.clockAheadMs;
    return route.handler(state, {
      method,
      path,
      id,
      query,
      body,
      idempotencyKey,
      requestId,
      nowMs: now,
    });
  }
  return stripeError(404, { message: `Unrecognized request URL (${method}: ${path}).` });
}

/** Bearer or basic authentication with any test key, as on Stripe; no other key is let in. */
function refuseKey(request: IncomingMessage): Reply | null {
  const header = headerOf(request, "authorization") ?? "";
  const basic = /^Basic\s+(\S+)$/i.exec(header)?.[1];
  const key =
    basic === undefined ? /^Bearer\s+(\S+)$/i.exec(header)?.[1] : Buffer.from(basic, "base64").toString().split(":")[0];
  if (key === undefined) {
    return stripeError(401, { message: "You did not provide an API key. Send it as Authorization: Bearer sk_test_…" });
  }
  if (/^sk_test_\w+$/.test(key)) return null;
  return stripeError(401, { message: "Invalid API Key provided: the sandbox takes any key that begins with sk_test_" });
}

/** The whole body, or `null` as soon as it is too large; what still comes is dropped until the reply closes the line. */
function readBody(request: IncomingMessage): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    request.on("data", (chunk: Buffer) => {
      sizeBytes += chunk.length;
      if (sizeBytes > MAX_BODY_BYTES) resolve(null);
      else chunks.push(chunk);
    });
    request.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    request.on("error", reject);
  });
}

function send({ request, response }: Exchange, reply: Reply, requestId: string): void {
  const json = JSON.stringify(reply.body);
  const key = headerOf(request, "idempotency-key");
  const version = headerOf(request, "stripe-version");
  response.writeHead(reply.status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(json),
    "request-id": requestId,
    ...(key === null ? {} : { "idempotency-key": key }),
    ...(version === null ? {} : { "stripe-version": version }),
    ...(reply.status === 413 ? { connection: "close" } : {}),
    ...reply.headers,
  });
  response.end(json);
}

function headerOf(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === "string" ? value : null;
}

function isForm(request: IncomingMessage): boolean {
  return (headerOf(request, "content-type") ?? "").toLowerCase().startsWith("application/x-www-form-urlencoded");
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
