import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  breakConnection,
  createTestDatabase,
  type FaultPoint,
  type FaultPointsOptions,
  openFaultPoints,
  type TestDatabase,
} from "../src/index.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 1 });
  await pool.query("create table parcels (operation_id text primary key)");
});
afterAll(async () => {
  await pool.end();
  await database[Symbol.asyncDispose]();
});

const INSERT = "insert into parcels (operation_id) values ($1)";

async function countSent(operationId: string): Promise<number | null> {
  return (await pool.query("select from parcels where operation_id = $1", [operationId])).rowCount;
}

/** A store's pool with these points, and a connection that it has used before. */
async function openPool(options: FaultPointsOptions = {}) {
  const points = openFaultPoints(options);
  const store = points.store({ pool, tenantId: "t" });
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  return { points, store, pid: rows[0]?.pid };
}

describe("the points of a statement", () => {
  test("have its verb, or what it does first, as their name", async () => {
    const { points, store } = await openPool();
    await store.pool.query({ name: "holdpoint_commit_steps_0a1b2c3d", text: "select 1" });
    await store.pool.query(INSERT, ["op_names"]);
    await store.pool.query("select from parcels");
    expect(points.passed).toEqual([
      "statement:commit_steps:sent",
      "statement:commit_steps:answered",
      "statement:insert parcels:sent",
      "statement:insert parcels:answered",
      "statement:select parcels:sent",
      "statement:select parcels:answered",
    ]);
    expect(store.tenantId).toBe("t");
  });

  test("leave rows, errors and connections as they are", async () => {
    const { points, store, pid } = await openPool();
    const { rows } = await store.pool.query("select $1::int as n, pg_backend_pid() as pid", [7]);
    expect(rows).toEqual([{ n: 7, pid }]);
    await expect(store.pool.query("select from nothing")).rejects.toMatchObject({ code: "42P01" });
    expect(points.passed.slice(2)).toEqual(["statement:select nothing:sent", "statement:select nothing:answered"]);
  });

  test("say what is about to be sent, so that it can arrive later than it was meant", async () => {
    const met: FaultPoint[] = [];
    const fault = (point: FaultPoint): never => {
      met.push(point);
      return breakConnection();
    };
    const { store } = await openPool({ at: "statement:insert parcels:sent", fault });
    await expect(store.pool.query(INSERT, ["op_late"])).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(await countSent("op_late")).toBe(0);
    const { sending } = met[0] ?? {};
    if (sending?.kind !== "statement") throw new Error("nothing was about to be sent");
    await pool.query(sending.text, [...sending.values]);
    expect(await countSent("op_late")).toBe(1);
  });

  test("lose the answer of one that has taken effect, and its connection with it", async () => {
    const { store, pid } = await openPool({ at: "statement:insert parcels:answered", fault: breakConnection });
    await expect(store.pool.query(INSERT, ["op_lost"])).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(await countSent("op_lost")).toBe(1);
    const { rows } = await store.pool.query("select pg_backend_pid() as pid");
    expect(rows).not.toEqual([{ pid }]);
  });
});
