import { expect, test } from "vitest";
import { loseTheQueue } from "./lost-queue.ts";
import { openFleet } from "./processes.ts";

test("emptying the queue's tables in the middle of 200 runs loses none of them", async () => {
  await using fleet = await openFleet();
  const client = await fleet.store.pool.connect();
  try {
    // A busy queue keeps an exclusive lock waiting for longer than the store's own statements may.
    await client.query("set lock_timeout = 0");
    await loseTheQueue(fleet, async () => {
      const { rows } = await client.query<{ name: string }>(
        "select quote_ident(tablename) as name from pg_tables where schemaname = 'holdpoint_queue' and tablename <> 'migration'",
      );
      expect(rows.length).toBeGreaterThan(0);
      const tables = rows.map(({ name }) => `holdpoint_queue.${name}`).join(", ");
      await untilNoDeadlock(() => client.query(`truncate ${tables}`));
    });
  } finally {
    // Not to be used again: it has another setting now.
    client.release(true);
  }
});

/** The queue's own statements take its tables in another order: one that meets them there is sent again. */
async function untilNoDeadlock(send: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "40P01")) throw error;
    }
  }
}
