import {
  namesOf,
  type Parsed,
  Problem,
  type Reply,
  ROUTES,
  type Route,
  type RouteName,
  type Routes,
} from "@holdpoint/protocol";
import type { z } from "zod";
import { NoReplyError, ProblemError } from "./errors.ts";

export interface ClientOptions {
  /** Where the api listens: `http://127.0.0.1:4080`. */
  readonly baseUrl: string;
  /** Names the caller. */
  readonly token: string;
  /** Limit of each call in milliseconds, 30 000 unless given. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

/** What one call may say beside its input. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** For routes that take it: the same request again under the same key makes nothing new. */
  readonly idempotencyKey?: string;
}

type BodyInput<Name extends RouteName> = Routes[Name] extends { readonly body: infer Schema extends z.ZodType }
  ? z.input<Schema>
  : Readonly<Record<never, never>>;

/** What a route takes, in one object: the ids of its path, its filters (all may be left out) and its body. */
export type Input<Name extends RouteName> = Parsed<Name, "params"> & Partial<Parsed<Name, "query">> & BodyInput<Name>;

type Method<Name extends RouteName> =
  Readonly<Record<never, never>> extends Input<Name>
    ? (input?: Input<Name>, options?: CallOptions) => Promise<Reply<Name>>
    : (input: Input<Name>, options?: CallOptions) => Promise<Reply<Name>>;

/** One method per route of the table. */
export type Client = { readonly [Name in RouteName]: Method<Name> };

const TIMEOUT_MS = 30_000;

/**
 * A typed client of the api.
 *
 * Its methods throw a `ProblemError` where the server says no, a `NoReplyError` where there is no answer in time, and
 * the signal's reason where that was aborted.
 */
export function createClient(options: ClientOptions): Client {
  const methods = Object.entries<Route>(ROUTES).map(([name, route]) => [
    name,
    (input: Loose = {}, call: CallOptions = {}) => send(options, route, { input, call }),
  ]);
  // Each entry of the route table became the method of its name.
  return Object.fromEntries(methods) as Client;
}

type Loose = Readonly<Record<string, unknown>>;

async function send(
  client: ClientOptions,
  route: Route,
  { input, call }: { readonly input: Loose; readonly call: CallOptions },
): Promise<unknown> {
  const limit = AbortSignal.timeout(call.timeoutMs ?? client.timeoutMs ?? TIMEOUT_MS);
  const signal = call.signal === undefined ? limit : AbortSignal.any([limit, call.signal]);
  const url = addressOf(client.baseUrl, route, input);
  try {
    const response = await (client.fetch ?? fetch)(url, { ...request(client, route, { input, call }), signal });
    return await read(response, route);
  } catch (error) {
    if (error instanceof ProblemError || error instanceof NoReplyError) throw error;
    if (call.signal?.aborted === true) throw call.signal.reason;
    const place = `${route.method} ${url.origin}${url.pathname}`;
    if (limit.aborted) throw new NoReplyError("timeout", `${place}: no answer in time`, { cause: error });
    throw new NoReplyError("unreachable", `${place}: the api cannot be reached. Is it running?`, { cause: error });
  }
}

function addressOf(baseUrl: string, route: Route, input: Loose): URL {
  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const url = new URL(`${baseUrl.replace(/\/+$/, "")}${path}`);
  for (const [name, value] of Object.entries(pick(route.query, input))) {
    url.searchParams.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  return url;
}

function request(
  { token }: ClientOptions,
  route: Route,
  { input, call }: { readonly input: Loose; readonly call: CallOptions },
): RequestInit {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (call.idempotencyKey !== undefined && route.idempotent === true) headers["idempotency-key"] = call.idempotencyKey;
  if (route.body === undefined) return { method: route.method, headers };
  headers["content-type"] = "application/json";
  return { method: route.method, headers, body: JSON.stringify(pick(route.body, input)) };
}

/** The part of an input that a schema knows; what is undefined is left out. */
function pick(schema: Route["body"], input: Loose): Loose {
  return Object.fromEntries(
    namesOf(schema).flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])),
  );
}

async function read(response: Response, route: Route): Promise<unknown> {
  const body = parse(await response.text());
  if (response.ok) {
    const reply = route.reply.safeParse(body);
    if (reply.success) return reply.data;
  } else {
    const problem = Problem.safeParse(body);
    if (problem.success) throw new ProblemError(problem.data);
  }
  const what = `${route.method} ${route.path} was answered with status ${response.status} and something else than this api says`;
  throw new NoReplyError("unexpected_reply", `${what}. Is this the right address, and the same version?`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no JSON: the schemas refuse it, and the caller is told
  }
}
