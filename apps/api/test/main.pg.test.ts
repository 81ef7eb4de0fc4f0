import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { createClient } from "@holdpoint/client";
import { openStore, rolesOf } from "@holdpoint/store";
import { createTestDatabase, type TestDatabase, waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";

import { readConfig } from "../src/config.ts";
import { runApi } from "../src/run-api.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
// Each test starts a process, which takes its time while others keep the machine busy.
vi.setConfig({ testTimeout: 120_000 });

const TOKENS = "alice-token=alice:requester;mona-token=mona:manager";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const environment = (settings: Record<string, string>) => ({
  PATH: process.env.PATH,
  HOLDPOINT_API_PORT: "0",
  ...settings,
});

/** Runs the program until it ends by itself. */
async function run(settings: Record<string, string>, ...args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: environment(settings),
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, stdout, stderr };
}

/** Starts the program with a channel, and waits until it says that it listens. */
async function start(
  settings: Record<string, string>,
): Promise<{ child: ChildProcess; port: number; output: () => string }> {
  const child = fork(MAIN, { env: environment(settings), execArgv: [], stdio: ["ignore", "pipe", "inherit", "ipc"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout?.on("data", (chunk) => (output += String(chunk)));
  const [message] = await once(child, "message");
  expect(message).toEqual({ event: "api.listening", port: expect.any(Number) });
  return { child, port: message.port, output: () => output };
}

describe("a configuration that is not valid", () => {
  test("is told completely, without a secret, and nothing starts", async () => {
    const { code, stdout, stderr } = await run({
      HOLDPOINT_DATABASE_URL: "mysql://root:hunter22@host/db",
      HOLDPOINT_API_HOST: "0.0.0.0",
      HOLDPOINT_API_PORT: "99999",
      HOLDPOINT_API_TOKENS: "s3cret=alice:requester;long-enough=bob:",
    });
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr.split("\n").map((line) => line.trim().split(" ")[0])).toEqual([
      "holdpoint",
      "HOLDPOINT_DATABASE_URL",
      "HOLDPOINT_API_HOST",
      "HOLDPOINT_API_PORT",
      "HOLDPOINT_API_TOKENS",
      "HOLDPOINT_API_TOKENS",
      "",
    ]);
    expect(stderr).toContain("loopback");
    expect(stderr).not.toMatch(/hunter22|s3cret|long-enough/);
  });

  test("can be put right with --help", async () => {
    const { code, stdout } = await run({}, "--help");
    expect(code).toBe(0);
    for (const name of ["HOLDPOINT_DATABASE_URL", "HOLDPOINT_API_TOKENS", "HOLDPOINT_REDIS_URL"])
      expect(stdout).toContain(name);
  });
});

test("a Postgres that is not there is told with its place, without its password", async () => {
  const url = "postgres://holdpoint:hunter22@127.0.0.1:9/holdpoint";
  const { code, stderr } = await run({ HOLDPOINT_DATABASE_URL: url, HOLDPOINT_API_TOKENS: TOKENS });
  expect(code).toBe(1);
  expect(stderr).toBe(
    "holdpoint api: Postgres at 127.0.0.1:9/holdpoint cannot be used (ECONNREFUSED). Is it running, and is HOLDPOINT_DATABASE_URL right?\n",
  );
});

describe("an api that cannot serve", () => {
  const attempt = (settings: Record<string, string>) =>
    runApi({
      config: readConfig(environment({ HOLDPOINT_API_TOKENS: TOKENS, HOLDPOINT_LOG_LEVEL: "silent", ...settings })),
      stopped: Promise.resolve("it must not get that far"),
      onListening: (port) => expect.unreachable(`it listens on ${port}`),
    });

  test("says what to do about a database without the schema", async () => {
    const url = new URL(database.url);
    url.pathname = "/postgres";
    await expect(attempt({ HOLDPOINT_DATABASE_URL: url.href })).rejects.toThrow(
      "the schema is not migrated. Run holdpoint migrate.",
    );
  });

  test("says which port is taken", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    // A server that listens on TCP has an address of this form.
    const port = String((server.address() as AddressInfo).port);
    await expect(attempt({ HOLDPOINT_DATABASE_URL: database.url, HOLDPOINT_API_PORT: port })).rejects.toThrow(
      `Port ${port} of 127.0.0.1 cannot be used (EADDRINUSE). Set HOLDPOINT_API_PORT to another, or to 0.`,
    );
  });
});

describe("a running api", () => {
  test("ends when the process that started it is gone", async () => {
    const { child } = await start({ HOLDPOINT_DATABASE_URL: database.url, HOLDPOINT_API_TOKENS: TOKENS });
    const closed = once(child, "exit");
    child.disconnect();
    expect(await closed).toEqual([0, null]);
  });

  test("says where it listens, serves, and on a signal lets what it has begun end, also if that comes twice", async () => {
    const { child, port, output } = await start({ HOLDPOINT_DATABASE_URL: database.url, HOLDPOINT_API_TOKENS: TOKENS });
    const store = openStore({ url: database.url });
    onTestFinished(() => store[Symbol.asyncDispose]());
    const alice = createClient({ baseUrl: `http://127.0.0.1:${port}`, token: "alice-token" });
    expect(await alice.showReadiness()).toMatchObject({ postgres: "ok" });
    expect(await rolesOf(store, "mona")).toEqual(["manager"]);
    expect(await rolesOf(store, "alice")).toEqual([]);
    const blocker = await store.pool.connect();
    await blocker.query("begin; lock table holdpoint.sessions in access exclusive mode");
    const creating = alice.createSession();
    const blocked = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await waitFor(async () => (await store.pool.query(blocked)).rows.length > 0, {
      deadlineMs: 20_000,
      what: "the request to wait for its table",
    });
    const closed = once(child, "close");
    child.kill("SIGINT");
    child.kill("SIGINT");
    await waitFor(() => output().includes("api.draining"), { deadlineMs: 20_000, what: "the drain to begin" });
    await blocker.query("commit");
    blocker.release();
    expect(await creating).toMatchObject({ requester: "alice" });
    expect(await closed).toEqual([0, null]);
    const lines = output()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual({ event: "api.listening", port });
    expect(lines.at(-1)).toMatchObject({ event: "api.drained" });
  });
});
