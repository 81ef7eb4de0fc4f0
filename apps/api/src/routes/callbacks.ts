import { CALLBACK_PATH, CallbackBody, CallbackReply, Problem, SIGNATURE_HEADER } from "@holdpoint/protocol";
import { type CallbackResult, recordCallback } from "@holdpoint/store";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { type CallbackSecret, openSignatures } from "../callback-signature.ts";
import type { HandlerDeps } from "../deps.ts";
import { ApiProblem, notFound } from "../problem.ts";

const Params = z.object({ source: z.string() });
const Headers = z.looseObject({
  [SIGNATURE_HEADER]: z
    .string()
    .describe("t=<unix seconds>,v1=<hex>: HMAC-SHA256 of `<t>.<the body's bytes>` under the source's secret"),
});

/**
 * Where the other side of a tool reports by itself. It has no token: the signature over the body's own bytes says who it
 * is. Without the right one nothing is said, not even whether there is such a source or effect.
 */
export function callbackRoute(deps: HandlerDeps, secrets: readonly CallbackSecret[]) {
  const isSigned = openSignatures(secrets);
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      "application/json",
      { parseAs: "buffer" },
      async (_: FastifyRequest, body: Buffer) => body,
    );
    app.route({
      method: "POST",
      url: CALLBACK_PATH,
      config: { access: "anyone" },
      schema: {
        operationId: "reportCallback",
        summary: "Report what has become of an effect, signed; the same event again changes nothing",
        params: Params,
        headers: Headers,
        body: CallbackBody,
        response: { 200: CallbackReply, "4xx": Problem, "5xx": Problem },
      },
      handler: async (request) => {
        const { source } = Params.parse(request.params);
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const header = request.headers[SIGNATURE_HEADER];
        const signature = typeof header === "string" ? header : undefined;
        if (!isSigned({ source, signature, body }, Date.now())) {
          throw new ApiProblem(401, "unauthenticated", {
            detail: `The header ${SIGNATURE_HEADER} is missing, wrong, or of another time.`,
          });
        }
        const { id: eventId, status, externalRef = "", operationId } = read(body);
        const effect = operationId === undefined ? { externalRef } : { operationId };
        return replyTo(deps, await recordCallback(deps.store, { source, eventId, status, effect }));
      },
    });
  };
}

function read(body: Buffer): z.output<typeof CallbackBody> {
  const parsed = CallbackBody.safeParse(json(body));
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map(({ path, message }) => ({ path: ["body", ...path].join("."), message }));
  const detail = mistakes.map(({ path, message }) => `${path}: ${message}`).join("; ");
  throw new ApiProblem(400, "invalid_request", { detail, mistakes });
}

function json(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    throw new ApiProblem(400, "malformed_body", { detail: "The body is not valid JSON." });
  }
}

function replyTo({ wakeUps, log }: HandlerDeps, result: CallbackResult): z.output<typeof CallbackReply> {
  switch (result.result) {
    case "accepted":
    case "followed_up":
      wakeUps.announce(result.run);
      return { duplicate: false };
    case "buried":
      if (result.isNews) {
        log.error({ event: "callback.after_removal", runId: result.runId }, "effect of a removed run has failed");
      }
      return { duplicate: !result.isNews };
    case "repeated":
      return { duplicate: true };
    case "not_found":
      throw notFound("effect");
    case "busy":
      throw new ApiProblem(503, "unavailable", {
        detail: "The run kept changing while this was tried. Send it again.",
      });
  }
}
