import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

async function holdpoint(...args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let err = "";
  child.stderr.on("data", (data) => {
    err += data;
  });
  const [exitCode] = await once(child, "close");
  return { exitCode, err };
}

const LIMIT_MS = 30_000;

describe("an app that is started", { timeout: LIMIT_MS }, () => {
  test("fails with its own words and exit code", async () => {
    const { exitCode, err } = await holdpoint("migrate");
    expect(exitCode).toBe(1);
    expect(err).toContain("HOLDPOINT_DATABASE_URL");
  });

  test("tells its own help", async () => {
    expect(await holdpoint("sweeper", "--help")).toEqual({ exitCode: 0, err: "" });
  });
});
