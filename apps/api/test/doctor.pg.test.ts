import { createServer } from "node:net";
import { openPublisher } from "@holdpoint/queue";
import { markGone, newId, registerWorker, renewLease } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { describe, expect, test } from "vitest";
import { AGENT, openTestApi, problemOf, useTestApi } from "./api-fixture.ts";
import { aRun } from "./stage-run.ts";

const api = useTestApi();

const checksOf = async (of = api) => {
  const { worst, checks } = await of.as("olga-token").showDoctor();
  return { worst, byName: Object.fromEntries(checks.map((check) => [check.name, check])) };
};

async function aWorker(wallMs: number): Promise<string> {
  const workerId = newId();
  const process = { host: "box", pid: 7, agents: [AGENT], slots: 1, leaseMs: 60_000 };
  await registerWorker(api.store, { id: workerId, ...process });
  await renewLease(api.store, { workerId, leaseMs: 60_000, wallMs });
  return workerId;
}

describe("doctor", () => {
  test("is for operators", async () => {
    expect(await problemOf(api.as("alice-token").showDoctor())).toMatchObject({ status: 403 });
  });

  test("finds that no sweeper has looked and nobody serves what is queued, on a real server", async () => {
    await aRun(api);
    // The first look may come before the queue has made its tables.
    const { worst, byName } = await waitFor(
      async () => {
        const found = await checksOf();
        return found.byName.queue?.result === "ok" ? found : null;
      },
      { deadlineMs: 20_000, what: "the queue to take a write" },
    );
    expect(worst).toBe("fail");
    expect(byName).toMatchObject({
      "database version": { result: "ok", text: expect.stringMatching(/^Postgres \d+/) },
      migrations: { result: "ok" },
      primary: { result: "ok" },
      // The tests' own server need not survive a power cut.
      "writes to disk": { result: "fail" },
      "time limits of statements": { result: "ok", text: "lock_timeout 1000 ms, statement_timeout 10000 ms" },
      "clock of the api": { result: "ok" },
      sweepers: { result: "fail", text: "none has ever looked" },
      workers: { result: "fail", text: "none lives, 1 runs are queued" },
      versions: { result: "fail", text: `no worker has ${AGENT.name}@${AGENT.version} (1 runs, 1 queued)` },
      queue: { result: "ok" },
    });
  });

  test("is content with a worker that has the version and a sweeper that looks, and finds a clock that is off", async () => {
    await markGone(api.store, { graceMs: 5_000, limit: 10, sweeper: "sweeper-7" });
    await aWorker(Date.now() + 150_000);
    const { byName } = await checksOf();
    expect(byName).toMatchObject({
      sweepers: { result: "ok", text: expect.stringMatching(/^sweeper-7 looked 0 s ago/) },
      workers: { result: "ok" },
      versions: { result: "ok" },
      "clocks of the workers": { result: "warn", text: expect.stringMatching(/^box:7 1\d{5} ms ahead/) },
    });
  });

  test("finds a schema that is older than the program, and says what to do", async () => {
    await using other = await openTestApi();
    await other.store.pool.query(
      "delete from holdpoint.__drizzle_migrations where created_at = (select max(created_at) from holdpoint.__drizzle_migrations)",
    );
    const { worst, byName } = await checksOf(other);
    expect(worst).toBe("fail");
    expect(byName.migrations).toEqual({
      name: "migrations",
      result: "fail",
      text: "the schema is older than this program",
      todo: "Run holdpoint migrate.",
    });
    expect(byName.workers).toBeUndefined();
  });

  test("finds a queue that takes no write", async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const address = silent.address();
    const port = typeof address === "object" ? address?.port : 0;
    const url = `postgresql://nobody@127.0.0.1:${port}/none`;
    await using publisher = openPublisher({ kind: "postgres", url }, { limitMs: 200 });
    await using other = await openTestApi({ publisher });
    await aRun(other);
    const { byName } = await checksOf(other);
    silent.close();
    expect(byName.queue).toMatchObject({ result: "warn" });
    expect(byName["queue drift"]).toMatchObject({ result: "warn" });
  });

  test("finds that the sweeper has been away", async () => {
    await using other = await openTestApi();
    await markGone(other.store, { graceMs: 5_000, limit: 10, sweeper: "sweeper-7" });
    await other.store.pool.query("update holdpoint.lease_watch set seen_at = seen_at - interval '2 minutes'");
    expect((await checksOf(other)).byName.sweepers).toMatchObject({ result: "fail" });
  });
});
