import { Explanation, RestartPlan, Run, Takeover, Worker } from "@holdpoint/protocol";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});
afterAll(async () => {
  await desk[Symbol.asyncDispose]();
});

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });

async function json<T>(schema: z.ZodType<T>, ...argv: readonly string[]): Promise<T> {
  const { exitCode, out, err } = await as("olga", ...argv, "--json");
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

async function aWaitingRun(): Promise<string> {
  const { out } = await as("alice", "runs", "submit", "clerk@1", "pay the bill", "--json");
  const { id } = Run.parse(JSON.parse(out));
  await waitFor(async () => (await json(Explanation, "runs", "explain", id)).runs[0]?.status === "waiting_approval", {
    deadlineMs: 20_000,
    what: "the run to wait for its manager",
  });
  return id;
}

const workerOf = async (): Promise<z.output<typeof Worker>> => {
  const { items } = await json(z.object({ items: z.array(Worker) }), "workers", "list");
  // The one of this process; others are only rows.
  const worker = items.find(({ host }) => host !== "elsewhere");
  if (worker === undefined) throw new Error("no worker lives");
  return worker;
};

describe("runs", () => {
  test("explain, in words, from the status to what would move it", async () => {
    const id = await aWaitingRun();
    const { exitCode, out } = await as("olga", "runs", "explain", id);
    expect(exitCode).toBe(0);
    expect(out).toMatch(new RegExp(`^${id} {2}waiting_approval\nWaits for approval of pay by manager since `));
    expect(out).toMatch(/- apr_\w+ asks the role manager about pay, until .* may decide it\./s);
    expect(out).toMatch(/What would move it:\n {2}- apr_\w+ is decided\n {6}holdpoint approvals show apr_/);
    expect(out).toMatch(/Last transitions:\n.*Submitted by requester alice: queued\n.*Claimed by worker wrk_/s);
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
  });

  test("pause and resume", async () => {
    const id = await aWaitingRun();
    expect((await as("olga", "runs", "pause", id)).out).toMatch(/paused/);
    const { out } = await as("olga", "runs", "explain", id);
    expect(out).toMatch(/- an operator resumes it\n {6}holdpoint runs resume run_/);
    expect((await as("olga", "runs", "resume", id)).out).toMatch(/waiting_approval/);
  });

  test("explain of what is not there, or is no id", async () => {
    expect(await as("olga", "runs", "explain", "run_1")).toMatchObject({ exitCode: 2 });
    expect(await as("olga", "runs", "explain", "run_00000000000000000000000000")).toMatchObject({ exitCode: 3 });
  });
});

describe("doctor", () => {
  test("shows every check with what to do, and its exit code is that of the worst", async () => {
    const { exitCode, out } = await as("olga", "doctor");
    expect(exitCode).toBe(1);
    expect(out).toMatch(/ok {4}database version {12}Postgres \d+/);
    expect(out).toMatch(/fail {2}sweepers {20}none has ever looked\n +Start a sweeper \(holdpoint sweeper\)/);
    expect(out).toMatch(/Something is wrong; what is marked says what to do\.\n$/);
    expect((await as("olga", "doctor", "--json")).exitCode).toBe(1);
    expect((await as("alice", "doctor")).exitCode).toBe(1);
  });
});

describe("workers", () => {
  test("are listed without a verb and with one", async () => {
    const worker = await workerOf();
    for (const argv of [["workers"], ["workers", "list"]]) expect((await as("olga", ...argv)).out).toContain(worker.id);
  });

  test("plan-restart says what a drain and a kill do, by id and by host", async () => {
    const worker = await workerOf();
    const { exitCode, out } = await as("olga", "workers", "plan-restart", worker.id);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/If it is drained: it has nothing in flight and ends at once/);
    expect(out).toMatch(/If it is killed: its supervisor sees the end at once/);
    const { workers } = await json(RestartPlan, "workers", "plan-restart", worker.host);
    expect(workers.map(({ workerId }) => workerId)).toContain(worker.id);
    expect((await as("olga", "workers", "plan-restart", "no-such-host")).exitCode).toBe(3);
  });

  test("takeover says what it would do, and does it only when told", async () => {
    const id = await aWaitingRun();
    // A second worker has it and does nothing, as one that hangs.
    const workerId = await desk.claimIdly(id);
    const { out } = await as("olga", "workers", "takeover", id);
    expect(out).toMatch(/^Nothing was done\. Taking it from wrk_\w+ would do this; --apply does it\.\n/);
    expect(out).toMatch(/without its worker: queued; another worker goes on from the last stored step/);
    const dry = await json(Takeover, "workers", "takeover", id, "--dry-run");
    expect(dry).toMatchObject({ applied: false, workerId, forecast: { becomes: "queued" } });
    const done = await as("olga", "workers", "takeover", id, "--apply", "--reason", "it hangs");
    expect(done.out).toMatch(/^Taken from wrk_\w+; the run is queued now\.\n/);
    const nobody = await as("olga", "workers", "takeover", id, "--apply", "--reason", "again");
    expect([nobody.exitCode, nobody.err]).toEqual([1, expect.stringMatching(/nothing to take from one/)]);
  });

  test.each([
    [["workers", "takeover", "run_00000000000000000000000000", "--apply"], /--apply needs --reason/],
    [["workers", "takeover", "run_00000000000000000000000000", "--apply", "--dry-run", "--reason", "x"], /not both/],
    [["workers", "drain", "wrk_1", "--timeout", "0"], /--timeout is "0"/],
  ])("%j is told what is wrong", async (argv, text) => {
    const { exitCode, err } = await as("olga", ...argv);
    expect([exitCode, err]).toEqual([2, expect.stringMatching(text)]);
  });

  test("drain waits until the worker has ended, and says when it has not in time", async () => {
    const worker = await workerOf();
    const late = await as("olga", "workers", "drain", worker.id, "--wait", "--timeout", "1");
    expect([late.exitCode, late.err]).toEqual([
      1,
      expect.stringMatching(/has not ended after 1 s; it goes on draining/),
    ]);
    expect((await as("olga", "workers")).out).toMatch(/draining/);
    const waiting = as("olga", "workers", "drain", worker.id, "--wait", "--stay-down");
    await waitFor(async () => (await workerOf()).stayDown, { deadlineMs: 20_000, what: "the request to be stored" });
    await desk.drainWorker();
    const { exitCode, out } = await waiting;
    expect([exitCode, out]).toEqual([0, expect.stringMatching(/^Drained: wrk_\w+ ended at .* No other is started/)]);
    expect((await as("olga", "workers", "drain", worker.id)).exitCode).toBe(1);
  });
});
