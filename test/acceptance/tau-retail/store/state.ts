/** The store's records, as in the data's README. Optional fields that are not set are absent, never null. */
export type Address = {
  readonly address1: string;
  readonly address2: string;
  readonly city: string;
  readonly country: string;
  readonly state: string;
  readonly zip: string;
};

export type PaymentMethod =
  | { readonly source: "credit_card"; readonly id: string; readonly brand: string; readonly last_four: string }
  | { readonly source: "paypal"; readonly id: string }
  | GiftCard;

/** The only payment method with a balance, in dollars. */
export type GiftCard = { readonly source: "gift_card"; readonly id: string; readonly balance: number };

export type User = {
  readonly user_id: string;
  readonly name: { readonly first_name: string; readonly last_name: string };
  readonly email: string;
  readonly address: Address;
  readonly payment_methods: Readonly<Record<string, PaymentMethod>>;
  readonly orders: readonly string[];
};

export type OrderLine = {
  readonly name: string;
  readonly product_id: string;
  readonly item_id: string;
  /** Dollars, as sold. */
  readonly price: number;
  readonly options: Readonly<Record<string, string>>;
};

/** `amount` is in dollars and on purpose not always rounded: noise such as 12.98999999999998 is expected. */
export type PaymentEntry = {
  readonly transaction_type: "payment" | "refund";
  readonly amount: number;
  readonly payment_method_id: string;
};

export type Order = {
  readonly order_id: string;
  readonly user_id: string;
  readonly address: Address;
  readonly items: readonly OrderLine[];
  readonly status:
    | "pending"
    | "pending (item modified)"
    | "processed"
    | "delivered"
    | "cancelled"
    | "exchange requested"
    | "return requested";
  readonly fulfillments: readonly { readonly tracking_id: readonly string[]; readonly item_ids: readonly string[] }[];
  readonly payment_history: readonly PaymentEntry[];
  readonly cancel_reason?: string;
  readonly exchange_items?: readonly string[];
  readonly exchange_new_items?: readonly string[];
  readonly exchange_payment_method_id?: string;
  readonly exchange_price_difference?: number;
  readonly return_items?: readonly string[];
  readonly return_payment_method_id?: string;
};

export type Variant = {
  readonly item_id: string;
  readonly options: Readonly<Record<string, string>>;
  readonly available: boolean;
  readonly price: number;
};

export type Product = {
  readonly product_id: string;
  readonly name: string;
  readonly variants: Readonly<Record<string, Variant>>;
};

export type RetailState = {
  readonly users: Readonly<Record<string, User>>;
  readonly orders: Readonly<Record<string, Order>>;
  readonly products: Readonly<Record<string, Product>>;
};

/** What a write replaces: whole objects, at most one order and one user. */
export type Change = { readonly order?: Order; readonly user?: User };

/** The state after a change. Objects that the change does not name are the same objects as before. */
export function withChange(state: RetailState, change: Change): RetailState {
  const { order, user } = change;
  return {
    products: state.products,
    orders: order === undefined ? state.orders : { ...state.orders, [order.order_id]: order },
    users: user === undefined ? state.users : { ...state.users, [user.user_id]: user },
  };
}

/** A record's own entry, or undefined: an id such as "constructor" from a caller finds nothing. */
export function entryOf<T>(record: Readonly<Record<string, T>>, id: string): T | undefined {
  return Object.hasOwn(record, id) ? record[id] : undefined;
}
