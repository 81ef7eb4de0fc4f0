import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { fileURLToPath } from "node:url";
import { scriptedModel } from "@holdpoint/testkit";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { callModel } from "../src/call-model.ts";
import { openDeadline } from "../src/deadline.ts";
import { executeCall, lookUp } from "../src/execute-call.ts";
import { aCall, anAgent, findOrder } from "./parts.ts";

const never = () => new Promise<never>(() => undefined);
const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("openDeadline", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("aborts when the time is up, as a time-out", () => {
    const deadline = openDeadline(50, null);
    vi.advanceTimersByTime(49);
    expect([deadline.signal.aborted, deadline.isOver()]).toEqual([false, false]);
    vi.advanceTimersByTime(1);
    expect([deadline.signal.aborted, deadline.isOver()]).toEqual([true, true]);
    expect(deadline.signal.reason).toMatchObject({ name: "TimeoutError" });
  });

  test("aborts at the stop, with its reason: the time is not up then, nor later", () => {
    const stop = new AbortController();
    const deadline = openDeadline(50, stop.signal);
    stop.abort("paused");
    expect(deadline.signal.reason).toBe("paused");
    vi.advanceTimersByTime(100);
    expect(deadline.isOver()).toBe(false);
    expect(openDeadline(50, stop.signal).signal.reason).toBe("paused");
  });

  test("waits for the work no longer than that, and takes what the work throws", async () => {
    const deadline = openDeadline(50, null);
    expect(await deadline.race(Promise.resolve("done"))).toBe("done");
    await expect(deadline.race(Promise.reject(new RangeError("no")))).rejects.toThrow(RangeError);
    const waiting = deadline.race(never());
    vi.advanceTimersByTime(50);
    expect(await waiting).toBeNull();
    expect(await deadline.race(Promise.resolve("late"))).toBeNull();
  });

  test("leaves nothing behind: no timer, and nothing on the stop", () => {
    const stop = new AbortController();
    const deadline = openDeadline(50, stop.signal);
    expect([vi.getTimerCount(), listeners(stop.signal)]).toEqual([1, 1]);
    deadline.end();
    expect([vi.getTimerCount(), listeners(stop.signal)]).toEqual([0, 0]);
    stop.abort();
    expect(deadline.signal.aborted).toBe(false);
  });
});

test("a deadline keeps no process alive that has nothing else to do", () => {
  const from = JSON.stringify(fileURLToPath(new URL("../src/deadline.ts", import.meta.url)));
  const script = `const { openDeadline } = await import(${from}); openDeadline(3_600_000, null);`;
  const ended = spawnSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 30_000 });
  expect(ended.status).toBe(0);
});

describe("calls leave nothing on the stop of their run, which outlives them", () => {
  const stop = new AbortController().signal;
  const attempt = {
    call: aCall(),
    attempt: 1,
    runId: "0198c0de-0000-7000-8000-000000000001",
    requester: "alice",
    stop,
  };
  const throws = { ...findOrder, execute: () => Promise.reject(new Error("away")) };
  const hangs = { ...findOrder, execute: never, reconcile: never };
  const short = { ...attempt, call: aCall({ timeoutMs: 5 }), remainingMs: 5 };
  const ask = (text: string) =>
    callModel(anAgent({ model: scriptedModel([{ text }]) }), [{ role: "user", content: "x" }], stop);

  test.each([
    ["a call that comes home", () => executeCall({ ...attempt, tool: findOrder, remainingMs: 1_000 }), "done"],
    ["one that throws", () => executeCall({ ...attempt, tool: throws, remainingMs: 1_000 }), "failed"],
    ["one that is given up", () => executeCall({ ...short, tool: hangs }), "failed"],
    ["a look-up that is given up", async () => (await lookUp({ ...short, tool: hangs })).found.answer, "unknown"],
    ["a model that answers", () => ask("done"), "reply"],
    ["a model that fails", () => ask(""), "failed"],
  ] as const)("%s", async (_what, call, end) => {
    const ended = await call();
    expect(typeof ended === "string" ? ended : ended.kind).toBe(end);
    expect(listeners(stop)).toBe(0);
  });
});
