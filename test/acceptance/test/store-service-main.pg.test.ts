import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { createTestDatabase } from "@holdpoint/testkit";
import { describe, expect, test } from "vitest";
import { createStoreClient } from "../tau-retail/store-client.ts";
import { retailFolder } from "./retail-folder.ts";

const MAIN = new URL("../tau-retail/store-service/main.ts", import.meta.url).pathname;

function start(...args: string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
}

async function textOf(stream: AsyncIterable<Buffer> | null): Promise<string> {
  return Buffer.concat(await Array.fromAsync(stream ?? [])).toString("utf8");
}

async function runToEnd(...args: string[]) {
  const child = start(...args);
  const exit = once(child, "close");
  const [out, err] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  const [code] = await exit;
  return { code, out, err };
}

describe("the store service's program", () => {
  test("explains itself", async () => {
    const { code, out } = await runToEnd("--help");
    expect(code).toBe(0);
    for (const option of ["--port", "--database-url", "--data"]) expect(out).toContain(option);
  });

  test.each([
    [[], "must be a postgres:// URL"],
    [["--database-url", "mysql://x"], "must be a postgres:// URL"],
    [["--database-url", "postgres://x/y", "--port", "70000"], "port"],
    [["--colour"], "--colour"],
  ])("refuses the options %j and says what is wrong", async (args, reason) => {
    const { code, err } = await runToEnd(...args);
    expect(code).toBe(1);
    expect(err).toContain(reason);
    expect(err).toContain("--help");
  });

  test.skipIf(retailFolder === null)(
    "says when it is ready, keeps its state over a restart, ends on SIGTERM",
    async () => {
      await using database = await createTestDatabase();
      const visit = async (use: (url: string) => Promise<void>) => {
        const child = start("--database-url", database.url);
        const exit = once(child, "exit");
        try {
          if (child.stdout === null) throw new Error("the child's output is not piped");
          const [line] = await once(createInterface(child.stdout), "line");
          const ready: unknown = JSON.parse(String(line));
          expect(ready).toEqual({ event: "store.ready", port: expect.any(Number), pid: child.pid });
          await use(`http://127.0.0.1:${(ready as { port: number }).port}`); // checked in the line above
        } finally {
          child.kill("SIGTERM");
        }
        expect(await exit).toEqual([0, null]);
      };
      await visit(async (url) => {
        const reply = await createStoreClient(url).callTool({
          task: "7",
          tool: "calculate",
          arguments: { expression: "1 + 1" },
          operationId: "unused",
        });
        expect(reply).toEqual({ ok: true, content: "2.0", errorCode: null });
        await createStoreClient(url).callTool({
          task: "7",
          tool: "cancel_pending_order",
          arguments: { order_id: "#none", reason: "no longer needed" },
          operationId: "op-1",
        });
      });
      await visit(async (url) => {
        expect(await createStoreClient(url).findExecutions("op-1")).toMatchObject([{ errorCode: "ORDER_NOT_FOUND" }]);
      });
    },
  );
});
