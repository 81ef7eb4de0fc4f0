import { randomUUID } from "node:crypto";
import helmet from "@fastify/helmet";
import swagger from "@fastify/swagger";
import { type Access, TASK_TOKEN_PATTERN } from "@holdpoint/protocol";
import { rolesOf, type Store } from "@holdpoint/store";
import Fastify, { type FastifyInstance, type FastifyRequest, LogController } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject, serializerCompiler } from "fastify-type-provider-zod";
import type { ApiDeps } from "./deps.ts";
import { BODY_LIMIT_BYTES, errorHandler, unknownAddress } from "./error-handler.ts";
import { isOperator, isSubmitter, isTaskRunner } from "./parts.ts";
import { ApiProblem, unauthenticated } from "./problem.ts";
import { approvalHandlers } from "./routes/approvals.ts";
import { assignmentHandlers } from "./routes/assignments.ts";
import { callbackRoute } from "./routes/callbacks.ts";
import { memoryHandlers } from "./routes/memories.ts";
import { onCallHandlers } from "./routes/on-call.ts";
import { operationHandlers } from "./routes/operations.ts";
import { ruleHandlers } from "./routes/rules.ts";
import { runVerbHandlers } from "./routes/run-verbs.ts";
import { runHandlers } from "./routes/runs.ts";
import { scheduleHandlers } from "./routes/schedules.ts";
import { sessionHandlers } from "./routes/sessions.ts";
import { taskHandlers } from "./routes/tasks.ts";
import { upkeepHandlers } from "./routes/upkeep.ts";
import { webhookHandlers } from "./routes/webhooks.ts";
import { serve } from "./serve.ts";
import { type Bearer, type Caller, digest, openBearers } from "./tokens.ts";
import { openWakeUps } from "./wake-ups.ts";

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller | null;
    /** The hash of a task's token. */
    taskToken: string | null;
  }
  interface FastifyContextConfig {
    access?: Access;
  }
}

const REQUEST_LIMIT_MS = 30_000;

/** Builds the api over an open store and publisher; nothing listens yet. Closing it waits for what it has announced. */
export async function buildApi({ store, publisher, tokens, callbackSecrets, log }: ApiDeps): Promise<FastifyInstance> {
  const onError = errorHandler(log);
  const app = Fastify({
    // What the framework itself says, in the form of every other line.
    loggerInstance: log.child({ event: "framework.said" }),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_LIMIT_MS,
    genReqId: () => randomUUID(),
    frameworkErrors: (error, request, reply) => onError(error, request, reply),
  });
  const wakeUps = openWakeUps({ publisher, store, log });
  // Each route parses its parts itself, so that all mistakes are told together; here the schemas only describe.
  app.setValidatorCompiler(() => (value) => ({ value }));
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(onError);
  app.setNotFoundHandler(unknownAddress);
  app.decorateRequest("caller", null);
  app.decorateRequest("taskToken", null);
  app.addHook("onRequest", identify(store, openBearers(tokens)));
  app.addHook("onResponse", async (request, reply) => {
    log.info(
      outcomeOf(request, { status: reply.statusCode, durationMs: Math.round(reply.elapsedTime) }),
      "request completed",
    );
  });
  app.addHook("onClose", () => wakeUps.settled());
  await app.register(helmet);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Holdpoint", version: "0.1.0", description: "Runs of AI agents that wait for people." },
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  const deps = { store, publisher, wakeUps, log };
  await app.register(async (routes) => {
    serve(routes, {
      ...sessionHandlers(deps),
      ...runHandlers(deps),
      ...runVerbHandlers(deps),
      ...approvalHandlers(deps),
      ...operationHandlers(deps),
      ...onCallHandlers(deps),
      ...assignmentHandlers(deps),
      ...ruleHandlers(deps),
      ...upkeepHandlers(deps),
      ...scheduleHandlers(deps),
      ...memoryHandlers(deps),
      ...taskHandlers(deps),
      ...webhookHandlers(deps),
    });
    await routes.register(callbackRoute(deps, callbackSecrets ?? []));
    routes.get("/openapi.json", { schema: { hide: true }, config: { access: "anyone" } }, async () => app.swagger());
  });
  return app;
}

/** Says who calls, before anything of the request is read; an address without a route is nobody's. */
function identify(store: Store, findBearer: (token: string) => Bearer | null) {
  return async (request: FastifyRequest): Promise<void> => {
    const { access = "anyone" } = request.routeOptions.config;
    if (access === "anyone") return;
    const token = tokenOf(request);
    if (access === "task" || access === "executor") {
      request.taskToken = taskTokenOf(token);
      if (request.taskToken !== null) return;
      if (access === "task") throw unauthenticated("the token of the task (from its start)");
    }
    const bearer = token === null ? null : findBearer(token);
    if (bearer === null) throw unauthenticated("a known token");
    requireAccess(access, bearer);
    request.caller = { ...bearer, roles: await rolesOf(store, bearer.user) };
  };
}

function tokenOf({ headers }: FastifyRequest): string | null {
  return /^Bearer ([\x21-\x7e]+)$/i.exec(headers.authorization ?? "")?.[1] ?? null;
}

/** The digest of a token that a task may have: whose task it is, if anybody's, only the rows say. */
function taskTokenOf(token: string | null): string | null {
  return token !== null && TASK_TOKEN_PATTERN.test(token) ? digest(token) : null;
}

function requireAccess(access: Access, bearer: Bearer): void {
  if (access === "submitter" && !isSubmitter(bearer)) throw forbidden("requesters and operators");
  if (access === "operator" && !isOperator(bearer)) throw forbidden("operators");
  const isForRunners = access === "task_runner" || access === "executor";
  if (isForRunners && !isTaskRunner(bearer)) throw forbidden("task runners and operators");
}

function forbidden(who: string): ApiProblem {
  return new ApiProblem(403, "forbidden", { detail: `This is for ${who} only.` });
}

/** What is logged of a request: its route and the ids in its path, never what was sent. */
function outcomeOf(request: FastifyRequest, outcome: { readonly status: number; readonly durationMs: number }) {
  const { id: requestId, method, routeOptions, caller } = request;
  return {
    event: "request.completed",
    requestId,
    method,
    route: routeOptions.url ?? null,
    ...idsOf(request.params),
    user: caller?.user ?? null,
    ...outcome,
  };
}

const ID = /^(run|ses|apr|wrk|dlv)_[0-9a-z]{26}$/;

function idsOf(params: unknown): Readonly<Record<string, string>> {
  if (typeof params !== "object" || params === null) return {};
  return Object.fromEntries(Object.entries(params).filter(([, value]) => typeof value === "string" && ID.test(value)));
}
