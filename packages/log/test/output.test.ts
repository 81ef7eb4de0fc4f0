import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openOutput } from "../src/output.ts";

/** Every write to a file descriptor, as it goes out; what it does can be replaced. */
const writes = vi.hoisted(() => ({ sync: vi.fn<(fd: number, bytes: Buffer) => number>() }));
vi.mock("node:fs", async (actual) => ({ ...(await actual<typeof import("node:fs")>()), writeSync: writes.sync }));

interface Line {
  readonly event: string;
  readonly n: number;
  readonly lines?: number;
}

const PROGRAM = new URL("./saying-program.ts", import.meta.url);
/** More than a pipe holds. */
const MANY = 3_000;
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

function start(end: string, lines: number): ChildProcess {
  return fork(PROGRAM, [end, String(lines)], { execArgv: [], stdio: ["ignore", "pipe", "ignore", "ipc"] });
}

async function linesOf({ stdout }: ChildProcess): Promise<readonly Line[]> {
  const lines: Line[] = [];
  if (stdout === null) throw new Error("The child's output is not piped");
  for await (const line of createInterface({ input: stdout })) lines.push(JSON.parse(line) as Line);
  return lines;
}

describe("the log of a process that ends", () => {
  test.each([
    ["returns", 0],
    ["exits", 3],
    ["throws", 1],
    ["rejects", 1],
    ["is killed after a fatal line", null],
  ] as const)("has all its lines, in their order, when it %s", async (end, code) => {
    const child = start(end, 50);
    const [lines, [exitCode]] = await Promise.all([linesOf(child), once(child, "exit")]);
    expect(lines.map(({ n }) => n)).toEqual(upTo(50));
    expect(exitCode).toBe(code);
  });

  test("is written whole where its reader had no room before, and has held up nothing meanwhile", async () => {
    const child = start("exits unread", MANY);
    // It goes on although nobody has read a line.
    await once(child, "message");
    child.send("exit");
    const lines = await linesOf(child);
    expect(lines.map(({ n }) => n)).toEqual(upTo(MANY + 1));
  });

  test("ends nothing when its reader is gone", async () => {
    const child = start("exits unread", MANY);
    await once(child, "message");
    child.stdout?.destroy();
    child.send("exit");
    const [exitCode] = await once(child, "exit");
    expect(exitCode).toBe(0);
  });
});

describe("openOutput", () => {
  let folder: string;
  let fd: number;
  beforeEach(async () => {
    const { writeSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
    writes.sync.mockReset().mockImplementation((to, bytes) => writeSync(to, bytes));
    folder = await mkdtemp(join(tmpdir(), "log-"));
    fd = openSync(join(folder, "log"), "a");
  });
  afterEach(async () => {
    closeSync(fd);
    await rm(folder, { recursive: true });
  });
  const written = () => readFileSync(join(folder, "log"), "utf8");
  const noRoom = () => {
    throw Object.assign(new Error("no room"), { code: "EAGAIN" });
  };

  test("writes what is said in one turn at its end, in whole lines of no more than a pipe takes whole", async () => {
    const output = openOutput(fd);
    const lines = upTo(100).map((n) => `${n} ${"ä".repeat(60)}\n`);
    for (const line of lines) output.write(line);
    expect(writes.sync).not.toHaveBeenCalled();
    await turn();
    expect(written()).toBe(lines.join(""));
    const pieces = writes.sync.mock.calls.map(([, bytes]) => bytes);
    expect(pieces.length).toBe(4);
    expect(pieces.every((bytes) => bytes.length <= 4_096 && bytes.at(-1) === 10)).toBe(true);
  });

  test("goes on in the middle of a line where a write has ended there", async () => {
    const write = writes.sync.getMockImplementation();
    writes.sync.mockImplementation((to, bytes) => write?.(to, bytes.subarray(0, 7)) ?? 0);
    const output = openOutput(fd);
    output.write("the first line\n");
    output.write("the second line\n");
    await turn();
    expect(written()).toBe("the first line\nthe second line\n");
  });

  test("leaves out what a reader that is stuck has no room for, and says how much where it is missing", async () => {
    const write = writes.sync.getMockImplementation();
    writes.sync.mockImplementation(noRoom);
    const output = openOutput(fd, { limitBytes: 40 });
    for (const n of upTo(9)) output.write(`line number ${n}\n`);
    await turn();
    writes.sync.mockImplementation((to, bytes) => write?.(to, bytes) ?? 0);
    output.flushSync();
    output.write("the next line\n");
    output.flushSync();
    const [one, two, three, told, next] = written().trimEnd().split("\n");
    expect([one, two, three, next]).toEqual(["line number 0", "line number 1", "line number 2", "the next line"]);
    expect(JSON.parse(told ?? "")).toMatchObject({ level: 40, event: "log.left_out", lines: 6 });
  });

  test("waits for nobody where nobody can read any more", () => {
    writes.sync.mockImplementation(() => {
      throw Object.assign(new Error("bad file descriptor"), { code: "EBADF" });
    });
    const output = openOutput(fd, { lastWaitMs: 60_000 });
    output.write("a line\n");
    output.flushSync();
    output.write("another\n");
    output.flushSync();
    expect(writes.sync.mock.calls.map(([, bytes]) => bytes.toString())).toEqual(["a line\n", "a line\n"]);
  });

  test("does not wait for ever at the end", () => {
    writes.sync.mockImplementation(noRoom);
    const output = openOutput(fd, { lastWaitMs: 30 });
    output.write("a line\n");
    output.flushSync();
    expect(writes.sync).toHaveBeenCalled();
    expect(written()).toBe("");
  });
});
