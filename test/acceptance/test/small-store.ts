import type { Order, RetailState, User } from "../tau-retail/retail-store.ts";

export const ADDRESS = {
  address1: "1 Elm Street",
  address2: "",
  city: "Austin",
  country: "USA",
  state: "TX",
  zip: "78701",
} as const;

export const OTHER_ADDRESS = { ...ADDRESS, address1: "2 Oak Street", zip: "78702" };

const variant = (item_id: string, price: number, available = true) => ({
  item_id,
  price,
  available,
  options: { size: item_id },
});

export const anna: User = {
  user_id: "anna_1",
  name: { first_name: "Anna", last_name: "Berg" },
  email: "anna@example.com",
  address: ADDRESS,
  payment_methods: {
    card: { source: "credit_card", id: "card", brand: "visa", last_four: "1111" },
    gift: { source: "gift_card", id: "gift", balance: 20 },
    paypal: { source: "paypal", id: "paypal" },
  },
  orders: ["#P", "#D"],
};

const line = (item_id: string, price: number) => ({
  name: "Shirt",
  product_id: "10",
  item_id,
  price,
  options: { size: item_id },
});

export function anOrder(fields: Partial<Order>): Order {
  return {
    order_id: "#P",
    user_id: "anna_1",
    address: ADDRESS,
    items: [line("11", 10.1), line("12", 20.2)],
    status: "pending",
    fulfillments: [],
    payment_history: [{ transaction_type: "payment", amount: 30.3, payment_method_id: "card" }],
    ...fields,
  };
}

/** A store of one user, one pending order #P, one delivered order #D, and one product with four variants. */
export function smallStore(orders: readonly Order[] = []): RetailState {
  const all = [anOrder({}), anOrder({ order_id: "#D", status: "delivered" }), ...orders];
  return {
    users: { anna_1: anna },
    orders: Object.fromEntries(all.map((order) => [order.order_id, order])),
    products: {
      "10": {
        product_id: "10",
        name: "Shirt",
        variants: {
          "11": variant("11", 11),
          "12": variant("12", 22),
          "13": variant("13", 33),
          "14": variant("14", 44, false),
        },
      },
    },
  };
}
