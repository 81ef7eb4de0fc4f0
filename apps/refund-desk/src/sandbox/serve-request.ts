import { type FaultPlan, faultAnswer, NO_FAULTS, type PointFaults, type StatusFault } from "./faults.ts";
import {
  type Exchange,
  headerOf,
  readBody,
  refuseForm,
  refuseKey,
  refuseSize,
  send,
  sendHalf,
} from "./http-exchange.ts";
import { route } from "./routes.ts";
import type { Reply, SandboxRequest, SandboxState } from "./sandbox-request.ts";
import { findPaymentIntent, rememberAnswer } from "./stripe-api.ts";
import { stripeError } from "./stripe-error.ts";

/** What a request needs besides the sandbox's state. */
export interface Serving extends Exchange {
  /** The sandbox's own clock. */
  readonly nowMs: () => number;
  /** Told of what could not be stored. */
  readonly onError: (error: unknown) => void;
}

/** A request as it came, and what it will meet. */
interface Arrival {
  readonly asked: SandboxRequest;
  /** It is not let in, for this reason. */
  readonly refused: Reply | null;
  readonly plan: FaultPlan;
  /** Its number in the log; `null` for what is asked of the sandbox itself. */
  readonly seq: number | null;
}

/**
 * Answers one request: the faults before the effect, the effect, its held reply, the faults after it.
 *
 * The effect does not depend on the client: one that left during a delay had sent its request all the same.
 */
export async function serveRequest(state: SandboxState, serving: Serving): Promise<void> {
  const requestId = state.newId("req");
  const arrival = receive(state, serving, { requestId, body: await readBody(serving) });
  const { asked, refused, plan } = arrival;

  if (!(await state.delays.wait(plan.before.delay))) return;
  if (plan.before.end !== null) {
    conclude(state, serving, { ...arrival, end: plan.before.end, reply: null });
    return;
  }
  const reply = refused ?? storing(serving, () => route(state, { ...asked, nowMs: serving.nowMs() }));
  if (reply.hold !== undefined) {
    const end = await state.holds.wait(reply.hold, serving.response);
    if (end === "cut") serving.response.destroy();
    if (end !== "released") return;
  }
  if (!(await state.delays.wait(plan.after.delay, asked.idempotencyKey))) return;
  conclude(state, serving, { ...arrival, end: plan.after.end, reply });
}

function receive(
  state: SandboxState,
  serving: Serving,
  { body, requestId }: { readonly body: string | null; readonly requestId: string },
): Arrival {
  const method = serving.request.method ?? "";
  const [path = "", query = ""] = (serving.request.url ?? "").split("?", 2);
  const idempotencyKey = headerOf(serving.request, "idempotency-key");
  const nowMs = serving.nowMs();
  const asked = { method, path, id: "", query, body: body ?? "", idempotencyKey, requestId, nowMs };
  if (!path.startsWith("/v1/")) return { asked, refused: refuseSize(body), plan: NO_FAULTS, seq: null };

  state.counts.add({ method, path, idempotency_key: idempotencyKey });
  const refused = refuseKey(serving) ?? refuseSize(body) ?? refuseForm(serving, body);
  const paymentIntent = findPaymentIntent(state, asked);
  // Whoever makes a payment known asks the sandbox, not the provider that it stands for.
  const mayFail = refused === null && !path.startsWith("/v1/test/");
  const plan = mayFail ? state.faults.take({ method, path, paymentIntent }) : NO_FAULTS;
  const seq = state.log.add({
    at: new Date(nowMs).toISOString(),
    method,
    path,
    payment_intent: paymentIntent,
    idempotency_key: idempotencyKey,
    faults: plan.ids,
  });
  return { asked, refused, plan, seq };
}

/** Sends what is to be sent. Without a fault of its own, a request that did not act has no reply. */
function conclude(
  state: SandboxState,
  serving: Serving,
  { asked, seq, end, reply }: Arrival & { readonly end: PointFaults["end"]; readonly reply: Reply | null },
): void {
  const nowMs = serving.nowMs();
  const sent = end?.kind === "status" ? failWith(state, serving, { asked: { ...asked, nowMs }, end }) : reply;
  if (serving.response.destroyed) return; // the client has left
  const facts = { requestId: asked.requestId, nowMs };
  if (sent === null || end?.kind === "reset") serving.request.socket.resetAndDestroy();
  else if (end?.kind === "half_reply") sendHalf(serving, sent, facts);
  else {
    if (seq !== null) state.log.noteStatus(seq, sent.status);
    send(serving, sent, facts);
  }
}

function failWith(
  state: SandboxState,
  serving: Serving,
  { asked, end }: { readonly asked: SandboxRequest; readonly end: StatusFault },
): Reply {
  const reply = faultAnswer(end, asked.nowMs);
  return storing(serving, () => {
    if (end.remembered) rememberAnswer(state, asked, reply);
    return reply;
  });
}

/** A failed write of the journal applies nothing, so its reply says "nobody knows" as Stripe's own 500 does. */
function storing({ onError }: Serving, act: () => Reply): Reply {
  try {
    return act();
  } catch (error) {
    onError(error);
    return stripeError(500, { type: "api_error", message: "The sandbox could not store the request." });
  }
}
