import { createTestDatabase, type TestDatabase, waitFor } from "@holdpoint/testkit";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrateQueue, openPublisher, queueName } from "../src/index.ts";
import { anAgent, opening, publishAll, serverOf, soon, wakeUp } from "./queue-fixture.ts";

describe("what the queue costs Postgres", () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
    await migrateQueue(queueIn(database));
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test("its tables are vacuumed by what has changed in them, not by how much they hold", async () => {
    const rows = await query(
      database,
      "select relname, reloptions from pg_class where relnamespace = 'holdpoint_queue'::regnamespace and reloptions is not null",
    );
    const reloptions = ["autovacuum_vacuum_threshold=1000", "autovacuum_vacuum_scale_factor=0"];
    expect(rows).toHaveLength(2);
    for (const relname of ["job", "event"]) expect(rows).toContainEqual({ relname, reloptions });
  });

  test("a wake-up's cost does not grow with how many wait behind it", async () => {
    // What a vacuum touches would be counted as well.
    for (const table of ["job", "event"]) {
      await query(database, `alter table holdpoint_queue.${table} set (autovacuum_enabled = off)`);
    }
    const few = await pagesOfTaking60(database, { waiting: 300 });
    const many = await pagesOfTaking60(database, { waiting: 3_000 });
    expect(many / few).toBeLessThan(1.5);
  });

  test("what many callers publish at a time shares transactions, and each hears of its own", async () => {
    const before = await counted("xact_commit", database);
    const publisher = openPublisher(queueIn(database), { limitMs: 15_000 });
    const agent = anAgent();
    const published = await Promise.all(Array.from({ length: 60 }, () => publisher.publish([wakeUp(agent)])));
    expect(published).toEqual(Array(60).fill({ published: 1, failed: 0, error: null }));
    expect(await publisher.waiting(agent)).toBe(60);
    await publisher[Symbol.asyncDispose]();
    expect((await counted("xact_commit", database)) - before).toBeLessThan(30);
  });
});

const SOURCE = { ...opening, abandonedAfterMs: 600_000 };
const queueIn = ({ url }: TestDatabase) => ({ kind: "postgres", url }) as const;

/** Pages that the server touches while 60 wake-ups of a queue are taken, without what opening a source costs. */
async function pagesOfTaking60(database: TestDatabase, { waiting }: { readonly waiting: number }): Promise<number> {
  const agent = anAgent();
  await publishAll(
    queueIn(database),
    Array.from({ length: waiting }, () => wakeUp(agent)),
  );
  // Before that: the look for abandoned jobs, which is made once in a while, and the end of the events of publishing,
  // which are thrown away together when 256 more have been written.
  const [, some, more] = [await pagesOfTaking(150), await pagesOfTaking(10), await pagesOfTaking(70)];
  return more - some;

  async function pagesOfTaking(count: number): Promise<number> {
    const before = await counted("blks_hit + blks_read", database);
    const source = await serverOf(queueIn(database)).openSource(queueName(agent), SOURCE);
    let job = await source.take();
    for (let taken = 1; taken < count; taken += 1) job = (await job?.removeAndTake()) ?? null;
    expect(job).not.toBeNull();
    await job?.remove();
    await source.close();
    return (await counted("blks_hit + blks_read", database)) - before;
  }
}

/** What a connection has done is surely counted when it has ended. */
async function counted(what: string, database: TestDatabase): Promise<number> {
  const others = "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
  await waitFor(async () => (await query(database, others)).length === 0, soon("the connections to end"));
  const sum = `select ${what} as count from pg_stat_database where datname = current_database()`;
  return Number((await query<{ count: string }>(database, sum))[0]?.count);
}

async function query<Row extends pg.QueryResultRow>(database: TestDatabase, statement: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end();
  }
}
