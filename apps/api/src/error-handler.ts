import { PROBLEM_MEDIA_TYPE } from "@holdpoint/protocol";
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from "fastify";
import { failureOf, isDatabaseAway } from "./failure.ts";
import { ApiProblem, toBody } from "./problem.ts";

/** The one place where an error becomes an answer. */
export function errorHandler(log: FastifyBaseLogger) {
  return async (error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const problem = problemOf(error);
    if (problem.status >= 500 && !(error instanceof ApiProblem)) {
      const route = request.routeOptions.url ?? null;
      log.error({ event: "request.failed", requestId: request.id, route, ...failureOf(error) }, "request failed");
    }
    if (problem.status === 401 && request.routeOptions.config.access !== "anyone")
      reply.header("www-authenticate", "Bearer");
    if (problem.status === 503) reply.header("retry-after", "1");
    await reply.code(problem.status).type(PROBLEM_MEDIA_TYPE).send(toBody(problem, request.id));
  };
}

/** What an address gets that no route has. */
export async function unknownAddress(): Promise<never> {
  throw new ApiProblem(404, "not_found", {
    detail: "There is nothing at this address; /openapi.json lists what there is.",
  });
}

function problemOf(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  const code = error instanceof Error && "code" in error ? error.code : null;
  const framework = typeof code === "string" ? BODY_ERRORS[code] : undefined;
  if (framework !== undefined) return framework();
  // Whatever else the framework refuses is a request that cannot be read.
  const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
  if (status >= 400 && status < 500) {
    return new ApiProblem(400, "invalid_request", { detail: "The request cannot be read." });
  }
  if (isDatabaseAway(error)) {
    return new ApiProblem(503, "unavailable", {
      detail: "The database did not answer. Whether the request took effect is not known; look before you repeat it.",
    });
  }
  return new ApiProblem(500, "internal", { detail: "This is a fault of the server. Its log has the request's id." });
}

export const BODY_LIMIT_BYTES = 131_072;

const malformed = () => new ApiProblem(400, "malformed_body", { detail: "The body is not valid JSON." });

const BODY_ERRORS: Readonly<Record<string, () => ApiProblem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    new ApiProblem(413, "body_too_large", { detail: `A body has at most ${BODY_LIMIT_BYTES} bytes.` }),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new ApiProblem(415, "unsupported_media_type", { detail: "Send the body as application/json." }),
  FST_ERR_CTP_EMPTY_JSON_BODY: malformed,
  FST_ERR_CTP_INVALID_JSON_BODY: malformed,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: malformed,
};
