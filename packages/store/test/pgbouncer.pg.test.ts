// Behind a pooler in transaction mode each statement may meet another server connection. Skipped where the program
// pgbouncer is not installed.

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commitSteps, findViolations, openStore, type Run, recordFact, renewLease, type Store } from "../src/index.ts";
import { testLifecycle } from "./a-lifecycle.ts";
import { ALICE, aCommit, aReply, aRun, aWorker, claimAll } from "./a-run.ts";
import { endBy, reload } from "./a-status.ts";

const PROGRAM = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"].find(existsSync);
const NOBODY = 65_534;

if (PROGRAM === undefined) process.stdout.write("there is no pgbouncer: the suite behind a pooler is skipped\n");

describe.skipIf(PROGRAM === undefined)("behind a pooler in transaction mode", () => {
  const stack = new AsyncDisposableStack();
  let store: Store | null = null;
  const opened = {
    get store(): Store {
      if (store === null) throw new Error("The store is open only while tests run");
      return store;
    },
  };

  beforeAll(async () => {
    const database = stack.use(await createTestDatabase());
    const pooled = await startPooler(database.url, stack);
    store = stack.use(openStore({ url: pooled, pooled: true, maxConnections: 20 }));
  });

  afterAll(async () => {
    const violations = await findViolations(opened.store);
    await stack.disposeAsync();
    expect(violations).toEqual([]);
  });

  testLifecycle(opened);

  test("many claims, steps, facts and renewals at once: each run has one owner, and every statement is known", async () => {
    const runs: Run[] = [];
    for (let n = 0; n < 10; n += 1) runs.push(await aRun(opened.store));
    const workers = await Promise.all(Array.from({ length: 8 }, () => aWorker(opened.store)));
    const claims = await Promise.all(
      workers.map(async (workerId) => {
        const claimed = [];
        for (const { id } of runs) {
          claimed.push(
            ...(await claimAll(opened.store, { runIds: [id], workerId, progressMs: 60_000, mayTakeSuspect: true })),
          );
          await recordFact(opened.store, { runId: id, kind: "message", text: "well?", actor: ALICE });
          expect(await renewLease(opened.store, { workerId, leaseMs: 15_000 })).toMatchObject({ renewed: true });
        }
        return claimed;
      }),
    );
    const claimed = claims.flat();
    expect(claimed.map(({ run }) => run.id).sort()).toEqual(runs.map(({ id }) => id).sort());
    const taken = await commitSteps(
      opened.store,
      claimed.map((each) => aCommit(each, { steps: [aReply([])] })),
    );
    expect(taken.every((each) => "result" in each && each.result === "taken")).toBe(true);
    for (const { run } of claimed) await endBy(opened.store, await reload(opened.store, run.id));
  });
});

/** Starts a pooler with two server connections in front of the database; gives the url that leads through it. */
async function startPooler(databaseUrl: string, stack: AsyncDisposableStack): Promise<string> {
  const server = new URL(databaseUrl);
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-pgbouncer-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const config = join(folder, "pgbouncer.ini");
  const database = server.pathname.slice(1);
  const settings = [
    "[databases]",
    `${database} = host=${server.hostname} port=${server.port} dbname=${database} user=${server.username}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    "default_pool_size = 2",
    "max_client_conn = 100",
  ];
  writeFileSync(config, `${settings.join("\n")}\n`, { mode: 0o644 });
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const pooler = spawn(PROGRAM ?? "", [config], { stdio: "ignore", cwd: "/", ...user });
  stack.defer(() => ended(pooler));
  server.port = String(port);
  await waitFor(() => answers(server.href), { deadlineMs: 10_000, what: "pgbouncer to answer" });
  return server.href;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const listener = createServer();
    listener.once("error", reject);
    listener.listen(0, "127.0.0.1", () => {
      const address = listener.address();
      listener.close(() =>
        typeof address === "object" && address !== null ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
