/** An order with what was given back of it; amounts in minor units. */
export interface Order {
  readonly id: string;
  readonly customerName: string;
  readonly email: string;
  readonly paymentIntent: string;
  readonly currency: string;
  readonly totalMinor: bigint;
  readonly orderedAt: Date;
  /** `null` while it is on its way. */
  readonly deliveredAt: Date | null;
  readonly items: readonly OrderItem[];
  readonly refunds: readonly OrderRefund[];
}

export interface OrderItem {
  readonly name: string;
  readonly quantity: number;
  readonly unitMinor: string;
}

/** A refund as recorded with the order; `pending` ones count as given back. */
export interface OrderRefund {
  readonly operationId: string;
  readonly amountMinor: bigint;
  readonly status: "succeeded" | "pending" | "failed";
}

/** The shop's rules. */
export interface RefundPolicy {
  /** Days after the delivery within which money is given back. */
  readonly windowDays: number;
  /** Refunds of orders above this total (minor units, whatever the currency) need a manager. */
  readonly managerLimitMinor: bigint;
  /** Above this total they need two of finance instead. */
  readonly twoPersonLimitMinor: bigint;
}
