import type { Answer } from "./stripe-error.ts";

/** How long a used idempotency key is remembered. */
const KEY_MEMORY_MS = 24 * 60 * 60 * 1_000;

/** A payment that can be refunded; amounts in minor units, `created` in Unix seconds. */
export interface PaymentIntent {
  readonly id: string;
  readonly amount: number;
  /** What had been given back before the sandbox knew this payment. */
  readonly amountRefunded: number;
  readonly currency: string;
  readonly created: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** `pending`: accepted, the money has not moved yet. */
export type RefundStatus = "succeeded" | "pending" | "failed";

export interface Refund {
  readonly id: string;
  readonly paymentIntent: string;
  readonly amount: number;
  readonly currency: string;
  readonly reason: string | null;
  readonly status: RefundStatus;
  readonly created: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly idempotencyKey: string | null;
}

/** The reply that a used key gives again. */
export interface KeyUse {
  readonly key: string;
  readonly fingerprint: string;
  readonly firstUsedAtMs: number;
  readonly requestId: string;
  readonly answer: Answer;
}

/** A refund whose money really moved. */
export interface LedgerRow {
  readonly seq: number;
  readonly refund: string;
  readonly payment_intent: string;
  readonly amount: number;
  readonly currency: string;
  readonly idempotency_key: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly moved_at: string;
}

/** One change of the book: what the journal holds, one a line. A refund and its key's reply are one change. */
export type BookEntry =
  | { readonly type: "payment"; readonly payment: PaymentIntent }
  | { readonly type: "refund"; readonly refund: Refund; readonly keyUse: KeyUse | null; readonly atMs: number }
  | { readonly type: "refused"; readonly keyUse: KeyUse }
  | { readonly type: "settled"; readonly refundId: string; readonly status: RefundStatus; readonly atMs: number }
  | { readonly type: "clock"; readonly aheadMs: number };

/** All that the sandbox knows. Changed by `applyEntry` only, live and at the reload. */
export interface Book {
  readonly payments: Map<string, PaymentIntent>;
  /** In the order of their creation. */
  readonly refunds: Map<string, Refund>;
  readonly refundsOf: Map<string, string[]>;
  readonly keys: Map<string, KeyUse>;
  readonly ledger: LedgerRow[];
  clockAheadMs: number;
}

export function emptyBook(): Book {
  return {
    payments: new Map(),
    refunds: new Map(),
    refundsOf: new Map(),
    keys: new Map(),
    ledger: [],
    clockAheadMs: 0,
  };
}

/** Applies one change. */
export function applyEntry(book: Book, entry: BookEntry): void {
  switch (entry.type) {
    case "payment":
      book.payments.set(entry.payment.id, entry.payment);
      return;
    case "refund":
      book.refunds.set(entry.refund.id, entry.refund);
      book.refundsOf.set(entry.refund.paymentIntent, [
        ...refundIdsOf(book, entry.refund.paymentIntent),
        entry.refund.id,
      ]);
      if (entry.keyUse !== null) book.keys.set(entry.keyUse.key, entry.keyUse);
      if (entry.refund.status === "succeeded") addToLedger(book, entry.refund, entry.atMs);
      return;
    case "refused":
      book.keys.set(entry.keyUse.key, entry.keyUse);
      return;
    case "settled": {
      const refund = book.refunds.get(entry.refundId);
      if (refund === undefined) throw new Error(`the book has no refund ${entry.refundId} to settle`);
      const settled = { ...refund, status: entry.status };
      book.refunds.set(settled.id, settled);
      if (settled.status === "succeeded") addToLedger(book, settled, entry.atMs);
      return;
    }
    case "clock":
      book.clockAheadMs = entry.aheadMs;
      return;
  }
}

/** What may still be refunded of a payment, in minor units. A refund that failed gives its amount free again. */
export function remainingOf(book: Book, payment: PaymentIntent): number {
  let remaining = payment.amount - payment.amountRefunded;
  for (const id of refundIdsOf(book, payment.id)) {
    const refund = book.refunds.get(id);
    if (refund !== undefined && refund.status !== "failed") remaining -= refund.amount;
  }
  return remaining;
}

/** The ids of a payment's refunds, oldest first; of all payments with `null`. */
export function refundIdsOf(book: Book, paymentIntent: string | null): readonly string[] {
  return paymentIntent === null ? [...book.refunds.keys()] : (book.refundsOf.get(paymentIntent) ?? []);
}

/** The earlier use of a key that is still remembered at this instant, or `null`. */
export function findKeyUse(book: Book, key: string, nowMs: number): KeyUse | null {
  const use = book.keys.get(key);
  return use !== undefined && nowMs - use.firstUsedAtMs < KEY_MEMORY_MS ? use : null;
}

function addToLedger(book: Book, refund: Refund, atMs: number): void {
  book.ledger.push({
    seq: book.ledger.length + 1,
    refund: refund.id,
    payment_intent: refund.paymentIntent,
    amount: refund.amount,
    currency: refund.currency,
    idempotency_key: refund.idempotencyKey,
    metadata: refund.metadata,
    moved_at: new Date(atMs).toISOString(),
  });
}
