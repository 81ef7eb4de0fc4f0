import { z } from "zod";
import { invalid, withJson } from "./admin-body.ts";
import type { Holds } from "./holds.ts";
import type { Handler, Reply } from "./sandbox-request.ts";
import { noSuch, stripeError } from "./stripe-error.ts";
import { refundObject } from "./stripe-object.ts";

const MAX_LEDGER_PAGE = 10_000;
const MAX_ADVANCE_MS = 10 * 365 * 24 * 60 * 60 * 1_000;

const PaymentIntentId = z.string().regex(/^pi_\w{1,64}$/);
const HoldBody = z.strictObject({ payment_intent: PaymentIntentId, count: z.int().min(1).max(1_000).default(1) });
const ReleaseBody = z.strictObject({ payment_intent: PaymentIntentId.optional(), cut: z.boolean().default(false) });
const PendingBody = z.strictObject({ payment_intent: PaymentIntentId });
const SettleBody = z.strictObject({ refund: z.string().max(100), status: z.enum(["succeeded", "failed"]) });
const ClockBody = z.strictObject({ advance_ms: z.int().min(0).max(MAX_ADVANCE_MS) });
const LedgerQuery = z.strictObject({
  payment_intent: PaymentIntentId.optional(),
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(MAX_LEDGER_PAGE).default(1_000),
});

/** `GET /sandbox/health`. */
export const getHealth: Handler = () => ({ status: 200, body: { status: "ok" } });

/** `GET /sandbox/ledger?payment_intent=&after=&limit=`: the refunds that moved money, in the order they did. */
export const getLedger: Handler = ({ journal }, { query }) => {
  const parsed = LedgerQuery.safeParse(Object.fromEntries(new URLSearchParams(query)));
  if (!parsed.success) return invalid(parsed.error);
  const { payment_intent, after, limit } = parsed.data;
  const rows = journal.book.ledger.filter(
    (row) => row.seq > after && (payment_intent === undefined || row.payment_intent === payment_intent),
  );
  return { status: 200, body: { rows: rows.slice(0, limit), has_more: rows.length > limit } };
};

/** `GET /sandbox/requests`: requests of the payment endpoints, by path and key, since the process started. */
export const getRequests: Handler = ({ counts }) => ({ status: 200, body: counts.list() });

/** `GET /sandbox/holds`: armed holds, and the replies that wait now. */
export const getHolds: Handler = ({ holds }) => showHolds(holds);

/** `POST /sandbox/hold`: the next `count` refunds of a payment move the money at once and keep their replies back. */
export const postHold: Handler = ({ holds }, { body }) =>
  withJson(body, HoldBody, ({ payment_intent, count }) => {
    holds.arm(payment_intent, count);
    return showHolds(holds);
  });

/** `POST /sandbox/release`: lets held replies go, or with `cut` closes their connections without a reply. */
export const postRelease: Handler = ({ holds }, { body }) =>
  withJson(body, ReleaseBody, ({ payment_intent, cut }) => ({
    status: 200,
    body: { released: holds.release(payment_intent ?? null, cut ? "cut" : "released") },
  }));

/** `POST /sandbox/pending`: the next refund of a payment is accepted as pending; its money has not moved yet. */
export const postPending: Handler = ({ pendingNext }, { body }) =>
  withJson(body, PendingBody, ({ payment_intent }) => {
    pendingNext.add(payment_intent);
    return { status: 200, body: { payment_intents: [...pendingNext] } };
  });

/** `POST /sandbox/settle`: ends a pending refund. The same again changes nothing; an end is never changed into another. */
export const postSettle: Handler = ({ journal }, { body, nowMs }) =>
  withJson(body, SettleBody, ({ refund: refundId, status }) => {
    const refund = journal.book.refunds.get(refundId);
    if (refund === undefined) return noSuch("refund", refundId, 400);
    if (refund.status === status) return { status: 200, body: refundObject(refund) };
    if (refund.status !== "pending") {
      return stripeError(400, {
        message: `The refund ${refundId} is ${refund.status}; only a pending one is settled.`,
      });
    }
    journal.record({ type: "settled", refundId, status, atMs: nowMs });
    return { status: 200, body: refundObject({ ...refund, status }) };
  });

/** `POST /sandbox/clock`: moves the sandbox's clock forward, for example past the memory of a key. */
export const postClock: Handler = ({ journal }, { body, nowMs }) =>
  withJson(body, ClockBody, ({ advance_ms }) => {
    journal.record({ type: "clock", aheadMs: journal.book.clockAheadMs + advance_ms });
    return { status: 200, body: { now: new Date(nowMs + advance_ms).toISOString() } };
  });

function showHolds(holds: Holds): Reply {
  const { armed, held } = holds.list();
  const rows = held.map((reply) => ({
    payment_intent: reply.paymentIntent,
    refund: reply.refund,
    idempotency_key: reply.idempotencyKey,
  }));
  return { status: 200, body: { armed, held: rows } };
}
