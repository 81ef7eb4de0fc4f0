import { z } from "zod";
import { invalid, withJson } from "./admin-body.ts";
import { type Faults, FaultsBody } from "./faults.ts";
import type { Handler, Reply } from "./sandbox-request.ts";
import { stripeError } from "./stripe-error.ts";

const ClearBody = z.strictObject({ id: z.string().max(100).optional() });
const LogQuery = z.strictObject({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
});

/** `GET /sandbox/faults`: the rules that are armed, with what is left of each. */
export const getFaults: Handler = ({ faults }) => showFaults(faults);

/** `POST /sandbox/faults`: arms rules for requests of the payment endpoints that arrive from now on. */
export const postFaults: Handler = ({ faults }, { body }) =>
  withJson(body, FaultsBody, ({ rules }) =>
    faults.add(rules)
      ? showFaults(faults)
      : stripeError(400, { message: "Too many rules are armed; POST /sandbox/faults/clear removes them." }),
  );

/**
 * `POST /sandbox/faults/clear`: removes one rule by its id, or all, and ends the delays that they had begun. What a
 * request that has arrived is still to meet besides, it meets.
 */
export const postClearFaults: Handler = ({ faults, delays }, { body }) =>
  withJson(body, ClearBody, ({ id }) => {
    delays.end(id ?? null);
    return { status: 200, body: { cleared: faults.clear(id ?? null) } };
  });

/** `GET /sandbox/request-log?after=&limit=`: when each request came, what it met and how it was answered. */
export const getRequestLog: Handler = ({ log }, { query }) => {
  const parsed = LogQuery.safeParse(Object.fromEntries(new URLSearchParams(query)));
  if (!parsed.success) return invalid(parsed.error);
  const { after, limit } = parsed.data;
  const requests = log.list().filter(({ seq }) => seq > after);
  return { status: 200, body: { requests: requests.slice(0, limit), has_more: requests.length > limit } };
};

function showFaults(faults: Faults): Reply {
  return { status: 200, body: { rules: faults.list() } };
}
