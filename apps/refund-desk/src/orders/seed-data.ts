import type { OrderItem, RefundPolicy } from "./order.ts";

/** What an order is an example of. */
export type SeedKind =
  | "above_limit"
  | "below_limit"
  | "too_late"
  | "partly_refunded"
  | "fully_refunded"
  | "not_delivered";

/** An order of the seed; `refundedMinor` was given back before anything here ran. */
export interface SeedOrder {
  readonly id: string;
  readonly kind: SeedKind;
  readonly customer: SeedCustomer;
  readonly paymentIntent: string;
  readonly currency: string;
  readonly totalMinor: number;
  readonly refundedMinor: number;
  readonly orderedDaysAgo: number;
  readonly deliveredDaysAgo: number | null;
  readonly items: readonly OrderItem[];
}

export interface SeedCustomer {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

export const SEED_POLICY: RefundPolicy = {
  windowDays: 30,
  managerLimitMinor: 10_000n,
  twoPersonLimitMinor: 40_000n,
};

const DAY_MS = 24 * 60 * 60 * 1_000;
const FIRST_NUMBER = 4_200;
const ORDER_COUNT = 300;
const CUSTOMER_COUNT = 60;

/** The orders 4411 to 4416 are one of each kind, in this order, and so on before and after them. */
const KINDS = ["above_limit", "below_limit", "too_late", "partly_refunded", "fully_refunded", "not_delivered"] as const;
const FIRST_NAMES = ["Mara", "Jonas", "Ines", "Tomasz", "Aiko", "Lucia", "Pieter", "Nadia", "Oskar", "Elif"] as const;
const LAST_NAMES = ["Lindqvist", "Okafor", "Moreau", "Nowak", "Tanaka", "Brandt"] as const;
const ITEMS = [
  "desk lamp",
  "kettle",
  "wool blanket",
  "headphones",
  "backpack",
  "coffee grinder",
  "rain jacket",
] as const;

/** The seed, the same every time: about 300 orders, ord_4200 to ord_4499, of 60 customers. */
export function listSeedOrders(): readonly SeedOrder[] {
  return Array.from({ length: ORDER_COUNT }, (_, index) => seedOrder(FIRST_NUMBER + index));
}

/** An order's dates as ISO text, counted back from `now`. */
export function datesOf(
  { orderedDaysAgo, deliveredDaysAgo }: Pick<SeedOrder, "orderedDaysAgo" | "deliveredDaysAgo">,
  now: Date,
): { readonly ordered_at: string; readonly delivered_at: string | null } {
  const daysBefore = (days: number) => new Date(now.getTime() - days * DAY_MS).toISOString();
  return {
    ordered_at: daysBefore(orderedDaysAgo),
    delivered_at: deliveredDaysAgo === null ? null : daysBefore(deliveredDaysAgo),
  };
}

function seedOrder(number: number): SeedOrder {
  const kind = pick(KINDS, number - 4_411 + 6_000);
  const above = kind === "above_limit";
  const quantity = 1 + scatter(number, 1, 2);
  const unit = above ? 12_000 + scatter(number, 2, 20_000) : 900 + scatter(number, 3, 3_900);
  const total = unit * quantity;
  const deliveredDaysAgo = kind === "too_late" ? 45 + scatter(number, 4, 200) : 1 + scatter(number, 5, 12);
  return {
    id: `ord_${number}`,
    kind,
    customer: seedCustomer(number % CUSTOMER_COUNT),
    paymentIntent: `pi_seed${number}`,
    currency: scatter(number, 6, 4) === 0 ? "usd" : "eur",
    totalMinor: total,
    refundedMinor: kind === "fully_refunded" ? total : kind === "partly_refunded" ? Math.floor(total / 3) : 0,
    orderedDaysAgo: deliveredDaysAgo + 3,
    deliveredDaysAgo: kind === "not_delivered" ? null : deliveredDaysAgo,
    items: [{ name: pick(ITEMS, scatter(number, 7, 1_000)), quantity, unitMinor: String(unit) }],
  };
}

function seedCustomer(index: number): SeedCustomer {
  const first = pick(FIRST_NAMES, index);
  const last = pick(LAST_NAMES, Math.floor(index / FIRST_NAMES.length));
  return {
    id: `cus_${1_000 + index}`,
    name: `${first} ${last}`,
    email: `${first}.${last}@example.com`.toLowerCase(),
  };
}

/** A number in [0, below) that looks random and is always the same for the same order and purpose (murmur3's finalizer). */
function scatter(number: number, purpose: number, below: number): number {
  let hash = Math.imul(number ^ Math.imul(purpose, 0x9e3779b1), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % below;
}

function pick<T>(list: readonly [T, ...T[]], index: number): T {
  return list[index % list.length] ?? list[0];
}
