import { expect, test } from "vitest";
import { loseTheQueue } from "./lost-queue.ts";
import { openFleet } from "./processes.ts";

test("emptying the queue's tables in the middle of 200 runs loses none of them", async () => {
  await using fleet = await openFleet();
  await loseTheQueue(fleet, async () => {
    const { rows } = await fleet.store.pool.query<{ name: string }>(
      "select quote_ident(tablename) as name from pg_tables where schemaname = 'holdpoint_queue' and tablename <> 'migration'",
    );
    expect(rows.length).toBeGreaterThan(0);
    await fleet.store.pool.query(`truncate ${rows.map(({ name }) => `holdpoint_queue.${name}`).join(", ")}`);
  });
});
