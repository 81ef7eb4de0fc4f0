import {
  type Access,
  IdempotencyKey,
  type Parsed,
  Problem,
  type Reply,
  ROUTES,
  type Route,
  type RouteName,
  type Routes,
} from "@holdpoint/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import { ApiProblem } from "./problem.ts";
import type { Caller } from "./tokens.ts";

/** Who calls: somebody whom a token names, or whoever has a task's token, of which only the hash goes on from here. */
interface Credentials<Needed extends Access> {
  readonly caller: Needed extends "anyone" | "task" ? null : Needed extends "executor" ? Caller | null : Caller;
  readonly taskToken: Needed extends "task" ? string : Needed extends "executor" ? string | null : null;
}

/** What a handler is given: everything parsed by the route's own schemas. */
export interface Asked<Name extends RouteName> extends Credentials<Routes[Name]["access"]> {
  readonly params: Parsed<Name, "params">;
  readonly query: Parsed<Name, "query">;
  readonly body: Parsed<Name, "body">;
  readonly idempotencyKey: string | null;
}

/** What a handler answers; without a status the route's own. */
export interface Answer<Name extends RouteName> {
  readonly body: Reply<Name>;
  readonly status?: 200;
}

export type Handler<Name extends RouteName> = (asked: Asked<Name>) => Promise<Answer<Name>>;
export type Handlers = { readonly [Name in RouteName]: Handler<Name> };

/** Registers every route of the table with its handler. */
export function serve(app: FastifyInstance, handlers: Handlers): void {
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    // Each name stands beside its own route; what is parsed by that route's schemas is what its handler takes.
    const handler = handlers[name as RouteName] as unknown as LooseHandler;
    app.route({
      method: route.method,
      url: route.path,
      config: { access: route.access },
      schema: schemaOf(name, route),
      handler: (request, reply) => answer(route, handler, { request, reply }),
    });
  }
}

type LooseHandler = (asked: {
  readonly caller: Caller | null;
  readonly taskToken: string | null;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly idempotencyKey: string | null;
}) => Promise<{ readonly body: unknown; readonly status?: number }>;

async function answer(
  route: Route,
  handler: LooseHandler,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<void> {
  const parsed = parse(route, request);
  const { body, status = route.status } = await handler({
    caller: request.caller,
    taskToken: request.taskToken,
    ...parsed,
  });
  await reply.code(status).send(body);
}

/** Parses all parts of a request, and tells all mistakes of all parts together. */
function parse(route: Route, request: FastifyRequest) {
  const mistakes: { path: string; message: string }[] = [];
  const read = (part: string, schema: z.ZodType | undefined, value: unknown): unknown => {
    if (schema === undefined) return {};
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    mistakes.push(...result.error.issues.map(({ path, message }) => ({ path: [part, ...path].join("."), message })));
    return null;
  };
  const key = route.idempotent === true ? request.headers["idempotency-key"] : undefined;
  const parsed = {
    params: read("path", route.params, request.params),
    query: read("query", route.query, request.query),
    body: read("body", route.body, request.body ?? {}),
    idempotencyKey: key === undefined ? null : String(read("header.idempotency-key", IdempotencyKey, key)),
  };
  if (mistakes.length === 0) return parsed;
  const detail = mistakes.map(({ path, message }) => `${path}: ${message}`).join("; ");
  throw new ApiProblem(400, "invalid_request", { detail, mistakes });
}

const HEADERS = z.looseObject({ "idempotency-key": IdempotencyKey.optional() });

function schemaOf(name: string, route: Route): FastifySchema {
  return {
    operationId: name,
    summary: route.summary,
    ...(route.access === "anyone" ? {} : { security: [{ token: [] }] }),
    ...(route.params === undefined ? {} : { params: route.params }),
    ...(route.query === undefined ? {} : { querystring: route.query }),
    ...(route.body === undefined ? {} : { body: route.body }),
    ...(route.idempotent === true ? { headers: HEADERS } : {}),
    response: {
      [route.status]: route.reply,
      ...(route.idempotent === true ? { 200: route.reply } : {}),
      "4xx": Problem,
      "5xx": Problem,
    },
  };
}
