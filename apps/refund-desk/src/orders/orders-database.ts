import { Pool } from "pg";
import { createOrdersSchema } from "./orders-schema.ts";

/** An open connection pool on the orders; closes with `await using`. */
export interface OrdersDatabase extends AsyncDisposable {
  readonly pool: Pool;
}

/**
 * Opens the orders' database and creates its schema where it is missing.
 *
 * @param url  REFUND_DESK_DATABASE_URL.
 * @param onPoolError  told of idle connections that the server cut; the pool makes new ones.
 */
export async function openOrders(url: string, onPoolError: (error: Error) => void): Promise<OrdersDatabase> {
  const pool = new Pool({
    connectionString: url,
    max: 4,
    application_name: "refund-desk",
    connectionTimeoutMillis: 5_000,
    statement_timeout: 10_000,
  });
  pool.on("error", onPoolError);
  try {
    await createOrdersSchema(pool);
  } catch (error) {
    await pool.end();
    throw error;
  }
  return { pool, [Symbol.asyncDispose]: () => pool.end() };
}
