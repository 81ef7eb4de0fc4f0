import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "./a-world.ts";

const TOKEN = "alice-dev-token";
const DENY = ["rules", "deny", "x", "--tool", "pay", "--message", "m", "--reason", "r"];
const RUN = `run_${"0".repeat(26)}`;

const server = createServer((_, response) => response.end("<html>a web page</html>"));
let webPage = "";
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  webPage = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server's address
});
afterAll(() => {
  server.close();
});

describe("wrong usage ends with 2 and says what is wrong", () => {
  test.each([
    [["frob"], "unknown command 'frob'"],
    [[], "Commands:"],
    [["runs"], "Commands:"],
    [["runs", "show"], "missing required argument 'run'"],
    [["runs", "list", "--limit", "0"], "1 to 200"],
    [["runs", "list", "--status", "done"], 'no status "done"'],
    [["runs", "submit", "refund-desk", "goal"], "refund-desk@1"],
    [["runs", "decide", RUN, "burn", "--reason", "x"], 'no choice "burn"'],
    [["runs", "decide", RUN, "abort"], "--reason"],
    [["runs", "decide", RUN, "mark_done", "--reason", "x", "--result", "{"], "must be JSON"],
    [["approvals", "list", "--state", "maybe"], 'no state "maybe"'],
    [["approvals", "reject", "apr_1"], "--note"],
    [["answer", RUN, "yes", "--hold", "x"], "--hold"],
    [["approvals", "edit", "apr_1", "--yes"], "--args"],
    [["approvals", "edit", "apr_1", "--yes", "--args", "{"], "--args must be JSON"],
    [["approvals", "edit", "apr_1", "--yes", "--args", "@/no/such/file"], "cannot be read (ENOENT)"],
    [["approvals", "respond", "apr_1", "--yes"], "--answer"],
    [["approvals", "abort", "apr_1"], "--note"],
    [["rules", "test", "clerk@1", "pay"], "--args"],
    [["rules", "test", "clerk", "pay", "--args", "{}"], "like refund-desk@1"],
    [["rules", "deny", "x", "--tool", "pay", "--reason", "y"], "--message"],
    [[...DENY, "--when", "amount"], "must be an argument, one of"],
    [[...DENY, "--when", "amount ~ 3"], "must be an argument, one of"],
    [[...DENY, "--when", "amount in 3"], "needs a list"],
    [[...DENY, "--when", "amount = {"], "neither JSON nor a plain word"],
  ])("%j", async (argv, said) => {
    const { exitCode, out, err } = await run(argv, { env: { HOLDPOINT_TOKEN: TOKEN } });
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: "" });
    expect(err).toContain(said);
  });
});

describe("the environment", () => {
  test("without a token nobody is asked", async () => {
    const { exitCode, err } = await run(["runs", "list"], { env: { HOLDPOINT_TOKEN: "" } });
    expect(exitCode).toBe(2);
    expect(err).toContain("HOLDPOINT_TOKEN is not set");
  });

  test("an address must be one", async () => {
    const env = { HOLDPOINT_TOKEN: TOKEN, HOLDPOINT_API_URL: "localhost:4080" };
    const { exitCode, err } = await run(["runs", "list"], { env });
    expect(exitCode).toBe(2);
    expect(err).toContain("HOLDPOINT_API_URL");
  });

  test("an api that cannot be reached ends with 4, also as JSON", async () => {
    const env = { HOLDPOINT_TOKEN: TOKEN, HOLDPOINT_API_URL: "http://127.0.0.1:1" };
    const plain = await run(["workers"], { env });
    expect(plain.exitCode).toBe(4);
    expect(plain.err).toContain("HOLDPOINT_API_URL");
    const json = await run(["workers", "--json"], { env });
    expect(json.exitCode).toBe(4);
    expect(JSON.parse(json.err)).toMatchObject({ code: "unreachable" });
  });

  test("something else than the api is no success", async () => {
    const { exitCode, err } = await run(["workers"], { env: { HOLDPOINT_TOKEN: TOKEN, HOLDPOINT_API_URL: webPage } });
    expect(exitCode).toBe(1);
    expect(err).toContain("right address");
  });
});

describe("help", () => {
  test.each([[["--help"]], [["help"]], [["runs", "--help"]], [["runs", "show", "--help"]]])(
    "%j ends with 0",
    async (argv) => {
      const { exitCode, out, err } = await run(argv);
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
      expect(out).toContain("Usage: holdpoint");
    },
  );

  test("lists the exit codes and the environment", async () => {
    const { out } = await run(["--help"]);
    expect(out).toContain("Exit codes:");
    expect(out).toContain("HOLDPOINT_TOKEN");
  });
});

describe("other apps", () => {
  test.each(["dev", "migrate", "api", "worker", "sweeper"])(
    "%s is started with its own arguments and gives its exit code",
    async (name) => {
      const started: (readonly [string, readonly string[]])[] = [];
      const argv = [name, "--agents", "x.ts", "--help", "--processes", "2"];
      const startApp = async (entry: string, args: readonly string[]) => {
        started.push([entry, args]);
        return 7;
      };
      expect((await run(argv, { startApp })).exitCode).toBe(7);
      expect(started).toEqual([[expect.stringContaining("/src/"), argv.slice(1)]]);
    },
  );
});
