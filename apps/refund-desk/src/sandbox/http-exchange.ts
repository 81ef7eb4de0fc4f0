import type { IncomingMessage, ServerResponse } from "node:http";
import type { Reply } from "./sandbox-request.ts";
import { stripeError } from "./stripe-error.ts";

const MAX_BODY_BYTES = 64 * 1_024;

/** One request and the way back to its client. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The whole body, or `null` as soon as it is too large; what still comes is dropped until the reply closes the line. */
export function readBody({ request }: Exchange): Promise<string | null> {
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

/** The reply to a body that is too large, else `null`. */
export function refuseSize(body: string | null): Reply | null {
  return body === null ? stripeError(413, { message: `The body is larger than ${MAX_BODY_BYTES} bytes.` }) : null;
}

/** The reply to a body that is no form, else `null`. */
export function refuseForm({ request }: Exchange, body: string | null): Reply | null {
  const isForm = headerOf(request, "content-type")?.toLowerCase().startsWith("application/x-www-form-urlencoded");
  if (body === null || body === "" || isForm === true) return null;
  return stripeError(400, {
    message: "Invalid request (check that your POST content type is application/x-www-form-urlencoded).",
  });
}

/** Bearer or basic authentication with any test key, as on Stripe; no other key is let in. */
export function refuseKey({ request }: Exchange): Reply | null {
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

/** When and under which id a request is answered; the instant is the `Date` of the reply. */
export interface ReplyFacts {
  readonly requestId: string;
  readonly nowMs: number;
}

/** Sends a reply. */
export function send({ request, response }: Exchange, reply: Reply, facts: ReplyFacts): void {
  const json = JSON.stringify(reply.body);
  response.writeHead(reply.status, headersOf(request, { ...reply, json, ...facts }));
  response.end(json);
}

/** Sends the head and one half of the body, then closes the connection. */
export function sendHalf({ request, response }: Exchange, reply: Reply, facts: ReplyFacts): void {
  const json = JSON.stringify(reply.body);
  response.writeHead(reply.status, headersOf(request, { ...reply, json, ...facts }));
  response.write(json.slice(0, json.length / 2), () => response.destroy());
}

/** A header that came once, or `null`. */
export function headerOf(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === "string" ? value : null;
}

function headersOf(
  request: IncomingMessage,
  { json, requestId, nowMs, status, headers }: Reply & ReplyFacts & { readonly json: string },
): Record<string, string | number> {
  const key = headerOf(request, "idempotency-key");
  const version = headerOf(request, "stripe-version");
  return {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(json),
    date: new Date(nowMs).toUTCString(),
    "request-id": requestId,
    ...(key === null ? {} : { "idempotency-key": key }),
    ...(version === null ? {} : { "stripe-version": version }),
    ...(status === 413 ? { connection: "close" } : {}),
    ...headers,
  };
}
