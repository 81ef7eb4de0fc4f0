import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createTestDatabase, type TestDatabase } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const AGENTS = fileURLToPath(new URL("./clerk.ts", import.meta.url));

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

test("a worker that drains has said all when it has ended, each line whole", { timeout: 120_000 }, async () => {
  const { PATH = "" } = process.env;
  const env = { PATH, HOLDPOINT_DATABASE_URL: database.url, HOLDPOINT_DRAIN_MS: "500" };
  const args = [MAIN, "--agents", AGENTS, "--processes", "2", "--slots", "4"];
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  const said: Record<string, unknown>[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(JSON.parse(line));
    const started = said.filter(({ event }) => event === "worker.started");
    if (started.length === 2 && !child.killed) child.kill("SIGTERM");
  }
  expect(await ended).toEqual([0, null]);
  const byEvent = Object.groupBy(said, ({ event }) => String(event));
  const counts = Object.fromEntries(Object.entries(byEvent).map(([event, lines = []]) => [event, lines.length]));
  expect(counts).toEqual({
    "worker.started": 2,
    "worker.draining": 2,
    "worker.drained": 2,
    "worker.exited": 2,
  });
});
