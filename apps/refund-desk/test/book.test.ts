import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type PaymentIntent, remainingOf } from "../src/sandbox/book.ts";
import { createDelays } from "../src/sandbox/delays.ts";
import { createFaults } from "../src/sandbox/faults.ts";
import { createHolds } from "../src/sandbox/holds.ts";
import { openJournal } from "../src/sandbox/journal.ts";
import { createRequestCounts } from "../src/sandbox/request-counts.ts";
import { createRequestLog } from "../src/sandbox/request-log.ts";
import type { SandboxState } from "../src/sandbox/sandbox-request.ts";
import { createRefund } from "../src/sandbox/stripe-api.ts";

const payment: PaymentIntent = {
  id: "pi_1",
  amount: 1_000,
  amountRefunded: 0,
  currency: "eur",
  created: 0,
  metadata: {},
};
/** One request: a key (or none), an amount, and how long after the one before it comes. */
const Request = fc.record({
  key: fc.constantFrom(null, "a", "b", "c"),
  amount: fc.integer({ min: 1, max: 600 }),
  laterMs: fc.constantFrom(0, 3_600_000, 86_400_000),
});

test("no sequence of refunds pays more than was paid, or twice for a remembered key; a reload knows the same", {
  timeout: 30_000,
}, () => {
  const folder = mkdtempSync(join(tmpdir(), "refund-desk-book-"));
  let files = 0;
  try {
    fc.assert(
      fc.property(fc.array(Request, { maxLength: 25 }), (requests) => {
        files += 1;
        const file = join(folder, `${files}.jsonl`);
        const journal = openJournal(file);
        let ids = 0;
        const newId = (prefix: string) => {
          ids += 1;
          return `${prefix}_${ids}`;
        };
        const state: SandboxState = {
          journal,
          holds: createHolds(),
          delays: createDelays(),
          faults: createFaults(),
          counts: createRequestCounts(),
          log: createRequestLog(),
          pendingNext: new Set(),
          newId,
        };
        journal.record({ type: "payment", payment });
        let nowMs = 0;
        for (const { key, amount, laterMs } of requests) {
          nowMs += laterMs;
          createRefund(state, {
            method: "POST",
            path: "/v1/refunds",
            id: "",
            query: "",
            body: `payment_intent=pi_1&amount=${amount}`,
            idempotencyKey: key,
            requestId: newId("req"),
            nowMs,
          });
        }
        journal.close();
        const { ledger } = journal.book;
        const paid = ledger.reduce((sum, row) => sum + row.amount, 0);
        expect(paid).toBeLessThanOrEqual(payment.amount);
        expect(remainingOf(journal.book, payment)).toBe(payment.amount - paid);
        for (const row of ledger) {
          const sameKey = ledger.filter((other) => other !== row && other.idempotency_key === row.idempotency_key);
          for (const other of row.idempotency_key === null ? [] : sameKey) {
            const apartMs = Math.abs(Date.parse(other.moved_at) - Date.parse(row.moved_at));
            expect(apartMs).toBeGreaterThanOrEqual(86_400_000);
          }
        }
        const reloaded = openJournal(file);
        reloaded.close();
        expect(reloaded.book).toEqual(journal.book);
      }),
      { numRuns: 60 },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
