import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { FOLLOWED } from "./follow-delivery.ts";

/** What became of one attempt to send a delivery. */
export interface Sending {
  readonly deliveryId: string;
  readonly attempt: number;
  /** The status of the answer; null: there was none. */
  readonly httpStatus: number | null;
  /** Why it is not delivered; null: it is. */
  readonly errorCode: string | null;
  /** When it is tried again, in milliseconds; null: it is not. */
  readonly retryInMs: number | null;
}

/**
 * Records what became of an attempt: delivered, pending until it is tried again, or dead. An attempt that was delivered
 * counts although another one was begun meanwhile, or none was to follow; one that failed counts only for itself.
 *
 * @returns the delivery's state; null if this attempt had nothing to say any more.
 */
export async function recordSending(store: Store, sending: Sending): Promise<"delivered" | "pending" | "dead" | null> {
  const { deliveryId, attempt, httpStatus, errorCode, retryInMs } = sending;
  const state = errorCode === null ? "delivered" : retryInMs === null ? "dead" : "pending";
  const values = [store.tenantId, deliveryId, attempt, state, httpStatus, errorCode, retryInMs];
  const [row] = await execute<{ state: typeof state }>(store, RECORD, values);
  return row?.state ?? null;
}

const RECORD = statement(
  "record_sending",
  `with settled as (
     update holdpoint.deliveries d set state = $4, last_status = $5::int, last_error_code = $6,
       delivered_at = case when $4 = 'delivered' then holdpoint.clock() end,
       next_at = case when $4 = 'pending' then holdpoint.clock() + $7::float8 * interval '1 millisecond' end
     where d.tenant_id = $1::uuid and d.id = $2::uuid and case when $4 = 'delivered' then d.state in ('pending', 'dead')
       else d.state = 'pending' and d.attempts = $3::int end
     returning d.*
   ),
   ${FOLLOWED}
   select state from settled`,
);
