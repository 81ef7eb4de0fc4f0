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
import { getFaults, getRequestLog, postClearFaults, postFaults } from "./fault-api.ts";
import type { Handler } from "./sandbox-request.ts";
import { createRefund, getPaymentIntent, getRefund, listRefunds, seedPaymentIntent } from "./stripe-api.ts";
import { stripeError } from "./stripe-error.ts";

const ROUTES: readonly { readonly method: "GET" | "POST"; readonly path: RegExp; readonly handler: Handler }[] = [
  { method: "POST", path: /^\/v1\/refunds$/, handler: createRefund },
  { method: "GET", path: /^\/v1\/refunds$/, handler: listRefunds },
  { method: "GET", path: /^\/v1\/refunds\/([^/]+)$/, handler: getRefund },
  { method: "GET", path: /^\/v1\/payment_intents\/([^/]+)$/, handler: getPaymentIntent },
  { method: "POST", path: /^\/v1\/test\/payment_intents$/, handler: seedPaymentIntent },
  { method: "GET", path: /^\/sandbox\/health$/, handler: getHealth },
  { method: "GET", path: /^\/sandbox\/ledger$/, handler: getLedger },
  { method: "GET", path: /^\/sandbox\/requests$/, handler: getRequests },
  { method: "GET", path: /^\/sandbox\/request-log$/, handler: getRequestLog },
  { method: "GET", path: /^\/sandbox\/holds$/, handler: getHolds },
  { method: "POST", path: /^\/sandbox\/hold$/, handler: postHold },
  { method: "POST", path: /^\/sandbox\/release$/, handler: postRelease },
  { method: "POST", path: /^\/sandbox\/pending$/, handler: postPending },
  { method: "POST", path: /^\/sandbox\/settle$/, handler: postSettle },
  { method: "POST", path: /^\/sandbox\/clock$/, handler: postClock },
  { method: "GET", path: /^\/sandbox\/faults$/, handler: getFaults },
  { method: "POST", path: /^\/sandbox\/faults$/, handler: postFaults },
  { method: "POST", path: /^\/sandbox\/faults\/clear$/, handler: postClearFaults },
];

/** Gives a request to the handler of its method and path; 404 when there is none. */
export const route: Handler = (state, request) => {
  for (const { method, path, handler } of ROUTES) {
    const match = method === request.method ? path.exec(request.path) : null;
    if (match !== null) return handler(state, { ...request, id: match[1] ?? "" });
  }
  return stripeError(404, { message: `Unrecognized request URL (${request.method}: ${request.path}).` });
};
