import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type PostgresServer, postgresStatus, removePostgres, startPostgres, stopPostgres } from "../src/index.ts";

const START_MS = 60_000;
let folder: string;
let dataDir: string;

// One data folder for all tests here, since making one takes longer than the rest; each test starts with it stopped.
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-embedded-"));
  chmodSync(folder, 0o755);
  dataDir = join(folder, "data");
});

afterEach(() => stopPostgres({ dataDir }), START_MS);

afterAll(async () => {
  await removePostgres({ dataDir });
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

async function ask(url: string, text: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query({ text, rowMode: "array" });
    return rows[0]?.[0];
  } finally {
    await client.end();
  }
}

function postmasterPid(server: PostgresServer): number {
  return Number(readFileSync(join(server.dataDir, "postmaster.pid"), "utf8").split("\n")[0]);
}

describe("startPostgres", { timeout: START_MS }, () => {
  test("keeps data and port over a stop and a start", async () => {
    const first = await startPostgres({ dataDir });
    await ask(first.url, "create table kept as select 'still here' as word");
    await first.stop();
    expect(await postgresStatus({ dataDir })).toEqual({ running: false, dataDir: first.dataDir });
    const second = await startPostgres({ dataDir });
    expect(second.port).toBe(first.port);
    expect(await ask(second.url, "select word from kept")).toBe("still here");
  });

  test("joins a server that runs already, also one that is just being made", async () => {
    await removePostgres({ dataDir });
    const [one, other] = await Promise.all([startPostgres({ dataDir }), startPostgres({ dataDir })]);
    const third = await startPostgres({ dataDir });
    expect([other.url, third.url]).toEqual([one.url, one.url]);
    await third.stop();
    expect((await postgresStatus({ dataDir })).running).toBe(false);
  });

  test("refuses another port than the one of the running server", async () => {
    const { port } = await startPostgres({ dataDir });
    await expect(startPostgres({ dataDir, port: port - 1 })).rejects.toMatchObject({ code: "OTHER_PORT" });
  });

  test("takes another port when the remembered one is taken, and says so when the given one is", async () => {
    const first = await startPostgres({ dataDir });
    await first.stop();
    const squatter = createServer().listen(first.port, "127.0.0.1");
    await once(squatter, "listening");
    await expect(startPostgres({ dataDir, port: first.port })).rejects.toMatchObject({ code: "START_FAILED" });
    const second = await startPostgres({ dataDir });
    squatter.close();
    expect(second.port).not.toBe(first.port);
  });

  test("starts again over the stale file of a killed server", async () => {
    const first = await startPostgres({ dataDir });
    await ask(first.url, "create table survived as select 1 as n");
    process.kill(postmasterPid(first), "SIGKILL");
    await expect.poll(() => postgresStatus({ dataDir }), { timeout: 10_000 }).toMatchObject({ running: false });
    const second = await startPostgres({ dataDir });
    expect(await ask(second.url, "select n from survived")).toBe(1);
  });

  test("applies settings, listens on the loopback address only and without a socket file", async () => {
    const { url } = await startPostgres({ dataDir, settings: { work_mem: "5MB", cluster_name: "it's quoted" } });
    expect(await ask(url, "show work_mem")).toBe("5MB");
    expect(await ask(url, "show cluster_name")).toBe("it's quoted");
    expect(await ask(url, "show listen_addresses")).toBe("127.0.0.1");
    expect(await ask(url, "show unix_socket_directories")).toBe("");
    expect(await ask(url, "show fsync")).toBe("on");
  });

  test("says what the server said when it does not start", async () => {
    const start = startPostgres({ dataDir, settings: { work_mem: "much" } });
    await expect(start).rejects.toMatchObject({ code: "START_FAILED", message: expect.stringContaining("work_mem") });
  });

  test("leaves a server that outlives the SIGKILL of its starter's whole process group", async () => {
    const script = join(import.meta.dirname, "start-and-wait.ts");
    const starter = spawn(process.execPath, [script, dataDir], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(starter.stdout, "data");
    if (starter.pid === undefined) throw new Error("the starter has no process id");
    process.kill(-starter.pid, "SIGKILL");
    await once(starter, "exit");
    const joined = await startPostgres({ dataDir });
    expect(joined.port).toBe(Number(String(line)));
    expect(await ask(joined.url, "select 1")).toBe(1);
  });

  test("works in a folder that nobody else may enter", async () => {
    const closed = join(folder, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const server = await startPostgres({ dataDir: join(closed, "data") });
    try {
      expect(await ask(server.url, "select 1")).toBe(1);
      expect(await postgresStatus({ dataDir: join(closed, "data") })).toMatchObject({
        running: true,
        port: server.port,
      });
    } finally {
      await removePostgres({ dataDir: join(closed, "data") });
    }
    expect(existsSync(server.dataDir)).toBe(false);
  });
});

describe("stopPostgres", { timeout: START_MS }, () => {
  test("ends open connections, and does nothing when no server runs", async () => {
    const { url } = await startPostgres({ dataDir });
    const client = new Client({ connectionString: url });
    const ended = new Promise((resolve) => client.on("error", resolve));
    await client.connect();
    await stopPostgres({ dataDir });
    expect(await ended).toBeInstanceOf(Error);
    await expect(stopPostgres({ dataDir })).resolves.toBeUndefined();
  });
});
