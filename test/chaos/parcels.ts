import type { Store } from "../../packages/store/src/index.ts";
import type { HandIn } from "./parcel-agent.ts";

/** The parcel service's counter, in a table of its own. */
export async function openParcels({ pool }: Store): Promise<{ list(): Promise<readonly unknown[]> }> {
  await pool.query("create table parcels (operation_id text primary key, recipient text, number serial)");
  return { list: async () => (await pool.query("select recipient from parcels")).rows };
}

export function handInAt(pool: Store["pool"]): HandIn {
  return async (operationId, to) => {
    const { rows } = await pool.query<{ number: number }>(
      `insert into parcels (operation_id, recipient) values ($1, $2)
       on conflict (operation_id) do update set recipient = excluded.recipient returning number`,
      [operationId, to],
    );
    return `parcel ${rows[0]?.number}`;
  };
}
