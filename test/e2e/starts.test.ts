import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../packages/testkit/src/index.ts";
import { AGENTS, startProgram } from "./processes.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

type App = "worker" | "sweeper";

async function run(app: App, args: readonly string[], env: Record<string, string>) {
  const program = startProgram(app, args, env);
  const code = await program.ended;
  return { code, output: program.output() };
}

const argsOf = (app: App, agents = AGENTS) => (app === "worker" ? ["--agents", agents] : []);
const good = () => ({
  HOLDPOINT_DATABASE_URL: database.url,
  OUTSIDE_URL: "http://127.0.0.1:1",
  HOLDPOINT_LOG_LEVEL: "error",
});

describe.each(["worker", "sweeper"] as const)("%s", (app) => {
  test("says how it is used, without any configuration", async () => {
    const { code, output } = await run(app, ["--help"], {});
    expect(code).toBe(0);
    expect(output).toContain(`holdpoint ${app}`);
    expect(output).toContain("HOLDPOINT_DATABASE_URL");
  });

  test("reports all mistakes of the configuration at once", async () => {
    const { code, output } = await run(app, argsOf(app), {
      HOLDPOINT_DATABASE_URL: "mysql://here",
      HOLDPOINT_REDIS_URL: "nonsense",
      HOLDPOINT_LOG_LEVEL: "loud",
      HOLDPOINT_LEASE_MS: "soon",
      HOLDPOINT_SWEEP_MS: "1",
    });
    expect(code).toBe(1);
    const own = app === "worker" ? "HOLDPOINT_LEASE_MS" : "HOLDPOINT_SWEEP_MS";
    for (const name of ["HOLDPOINT_DATABASE_URL", "HOLDPOINT_REDIS_URL", "HOLDPOINT_LOG_LEVEL", own])
      expect(output).toContain(name);
    expect(output).not.toMatch(/^\s+at /m);
  });

  test("checks values against each other", async () => {
    const env = {
      ...good(),
      HOLDPOINT_LEASE_MS: "1000",
      HOLDPOINT_RENEW_MS: "900",
      HOLDPOINT_GRACE_MS: "100",
      HOLDPOINT_SWEEP_MS: "200",
    };
    const { code, output } = await run(app, argsOf(app), env);
    expect(code).toBe(1);
    expect(output).toContain(
      app === "worker" ? "must fit three times into HOLDPOINT_LEASE_MS" : "must not exceed HOLDPOINT_GRACE_MS",
    );
  });

  test("says that Postgres is away", async () => {
    const { code, output } = await run(app, argsOf(app), {
      ...good(),
      HOLDPOINT_DATABASE_URL: "postgresql://x@127.0.0.1:1/x",
    });
    expect(code).toBe(1);
    expect(output).toContain("Postgres cannot be reached (ECONNREFUSED)");
  });

  test("says that the schema is not there", async () => {
    const { code, output } = await run(app, argsOf(app), { ...good(), HOLDPOINT_DATABASE_URL: inject("postgresUrl") });
    expect(code).toBe(1);
    expect(output).toContain("run `holdpoint migrate` first");
  });

  test("refuses an option that it does not know", async () => {
    const { code, output } = await run(app, ["--fast"], good());
    expect(code).toBe(1);
    expect(output).toContain("--fast");
  });
});

describe("worker", () => {
  test("says which module of agents is not there, or is none", async () => {
    const [none, absent, wrong] = await Promise.all([
      run("worker", [], good()),
      run("worker", argsOf("worker", "no-such-agents.ts"), good()),
      run("worker", argsOf("worker", resolve(import.meta.dirname, "outside.ts")), good()),
    ]);
    expect([none.code, absent.code, wrong.code]).toEqual([1, 1, 1]);
    expect(none.output).toContain("--agents <module> is required");
    expect(absent.output).toMatch(/The agents' module .*no-such-agents.ts cannot be loaded/);
    expect(wrong.output).toMatch(/outside.ts has no function openAgents/);
  });

  test("refuses numbers that are out of range", async () => {
    const { code, output } = await run("worker", [...argsOf("worker"), "--processes", "0", "--slots", "many"], good());
    expect(code).toBe(1);
    expect(output).toContain("processes");
    expect(output).toContain("--slots must be a number");
  });
});
