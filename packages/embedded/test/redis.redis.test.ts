import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findRedis, startRedis } from "../src/index.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdpoint-redis-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function send(port: number, command: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1" });
  try {
    await once(socket, "connect");
    socket.write(`${command}\r\n`);
    const [reply] = await once(socket, "data");
    return String(reply).trim();
  } finally {
    socket.destroy();
  }
}

describe.skipIf(findRedis() === null)("startRedis", () => {
  test("answers, keeps nothing, and can start again on the same port", async () => {
    const first = await startRedis({ dir });
    expect(await send(first.port, "SET greeting hello")).toBe("+OK");
    await first.stop();
    await expect(send(first.port, "PING")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    const second = await startRedis({ dir, port: first.port });
    expect(await send(second.port, "GET greeting")).toBe("$-1");
    await second.stop();
    expect(readdirSync(dir)).toEqual(["redis.log"]);
  });

  test("says so when the given port is taken", async () => {
    const first = await startRedis({ dir });
    try {
      const again = startRedis({ dir, port: first.port });
      await expect(again).rejects.toMatchObject({ code: "START_FAILED", message: expect.stringContaining("taken") });
    } finally {
      await first.stop();
    }
  });
});
