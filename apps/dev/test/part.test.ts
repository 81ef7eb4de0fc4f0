import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findLine } from "../src/log-file.ts";
import { runTask, startPart } from "../src/part.ts";

const LIMIT_MS = 30_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-part-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const planOf = (behaviour: string, readyEvent: string | null = `${behaviour}.ready`) => ({
  name: "cupboard",
  entry: "apps/dev/test/programs/a-part.ts",
  args: [behaviour],
  env: { PATH: process.env.PATH ?? "" },
  logFile: join(folder, "cupboard.log"),
  readyEvent,
});
const never = new AbortController().signal;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("a part", { timeout: LIMIT_MS }, () => {
  test("is ready when its log says so, and drains when it is stopped", async () => {
    const part = await startPart(planOf("steady"), never);
    expect(part.ready).toEqual({ event: "steady.ready", pid: part.pid });
    expect(await part.stop(LIMIT_MS)).toBe("drained");
    expect(await part.ended).toEqual({ code: 0, signal: null });
    expect(part.isAlive()).toBe(false);
  });

  test("that does not start is named, with its exit code and last lines", async () => {
    await expect(startPart(planOf("broken"), never)).rejects.toThrow(
      /^cupboard did not start \(exit code 3\)\.\nThe last lines of .*cupboard\.log:\n {2}the cupboard is bare$/,
    );
    await expect(runTask(planOf("broken", null))).rejects.toThrow(/^cupboard failed \(exit code 3\)/);
  });

  test("that does not stop in time is killed", async () => {
    const part = await startPart(planOf("stubborn"), never);
    expect(await part.stop(50)).toBe("killed");
    expect(await part.ended).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("is killed together with what it has started", async () => {
    const part = await startPart(planOf("parent"), never);
    const child = await waitFor(() => findLine(part.logFile, "stubborn.ready"), {
      deadlineMs: LIMIT_MS,
      what: "its child",
    });
    part.kill();
    await waitFor(() => !isRunning(Number(child.pid)), { deadlineMs: LIMIT_MS, what: "its child to be gone" });
    expect(part.isAlive()).toBe(false);
  });

  test("that is not wanted any more while it starts is stopped", async () => {
    const stop = new AbortController();
    const starting = startPart(planOf("steady", "never.ready"), stop.signal);
    stop.abort();
    await expect(starting).rejects.toThrow("abort");
  });
});
