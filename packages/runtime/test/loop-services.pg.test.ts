import { listServices, type Run } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ToolError } from "../src/index.ts";
import { aDesk, ask, aTool, type Behaviour } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const RUNS = 30;
const SLOTS = 4;
const KEY = { key: { validForMs: 30 * 86_400_000 } } as const;

async function nowMs(): Promise<number> {
  const { rows } = await fleet.store.pool.query("select holdpoint.clock() as at");
  return rows[0].at.getTime();
}

/** A provider that turns everybody away until a time, on the database's clock; what it was asked, and when. */
async function aProvider(openAfterMs: number, retryAfterMs: number | null) {
  const startMs = await nowMs();
  const asked: { readonly atMs: number; readonly answer: "throttled" | "done" }[] = [];
  const behave: Behaviour = async () => {
    const atMs = (await nowMs()) - startMs;
    const answer = atMs < openAfterMs ? "throttled" : "done";
    asked.push({ atMs, answer });
    if (answer === "throttled")
      throw new ToolError("slow down", { errorClass: "throttled", code: "http_429", retryAfterMs });
    return "paid";
  };
  return { asked, behave, startMs };
}

async function statuses(runs: readonly Run[]): Promise<readonly string[]> {
  const loaded = await Promise.all(runs.map(({ id }) => fleet.load(id)));
  return loaded.map(({ run }) => run.state.status);
}

/** Waits until every run has ended or waits, with no worker: nothing is under way. */
async function untilQuiet(runs: readonly Run[]): Promise<void> {
  const isQuiet = async () =>
    (await statuses(runs)).every((status) => status === "waiting_dependency" || status === "completed");
  await waitFor(isQuiet, { deadlineMs: 60_000, what: "the runs to wait or to have ended" });
}

/** Time passes to a moment after the start, and the sweeper comes by until nothing is due at it. */
async function passTo(runs: readonly Run[], ms: number): Promise<void> {
  await moveClock(fleet.url, ms);
  await fleet.sweep();
  await untilQuiet(runs);
}

/** Goes on, a while at a time, until all have ended. */
async function passUntilDone(
  runs: readonly Run[],
  from: { readonly ms: number; readonly stepMs: number },
): Promise<void> {
  for (let ms = from.ms, rounds = 0; rounds < 40; rounds += 1, ms += from.stepMs) {
    await passTo(runs, ms);
    if ((await statuses(runs)).every((status) => status === "completed")) return;
  }
  throw new Error("the runs do not end");
}

async function begin(pay: ReturnType<typeof aTool>, count = RUNS) {
  const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
  await fleet.start(agent, { slots: SLOTS });
  const runs: Run[] = [];
  for (let n = 0; n < count; n += 1) runs.push(await fleet.submit(agent));
  await untilQuiet(runs);
  return runs;
}

/** No effect was made twice, and being turned away has cost no run a try. */
async function expectOnceEach(runs: readonly Run[]): Promise<void> {
  for (const { id } of runs) {
    const attempts = await fleet.rows("attempts", id, "number");
    const classes = attempts.map(({ outcome, error_class: errorClass }) => `${outcome} ${errorClass}`);
    expect(classes.filter((each) => each === "succeeded null")).toHaveLength(1);
    expect(new Set(classes.slice(0, -1))).toEqual(new Set(classes.length > 1 ? ["failed throttled"] : []));
  }
}

// Many runs, each with its claims and waits: seconds of work.
const LONG = { timeout: 120_000 };

describe("thirty runs that share a service which turns everybody away", LONG, () => {
  test.each([
    { retryAfterMs: 600_000, openAfterMs: 1_200_000, probes: 3 },
    { retryAfterMs: 86_400_000, openAfterMs: 86_400_000, probes: 1 },
  ])(
    "for $retryAfterMs ms: none is called earlier, one probes, all complete",
    async ({ retryAfterMs, openAfterMs, probes }) => {
      const { asked, behave } = await aProvider(openAfterMs, retryAfterMs);
      const pay = aTool("pay", { effect: KEY, behave });
      const runs = await begin(pay);
      // What was under way when it closed, and nobody else.
      expect(asked.length).toBeLessThanOrEqual(SLOTS);
      expect(new Set(await statuses(runs))).toEqual(new Set(["waiting_dependency"]));
      const [held] = await Promise.all(runs.slice(-1).map(({ id }) => fleet.load(id)));
      expect(held?.run.state).toMatchObject({
        owner: null,
        openAttempts: 0,
        waitingFor: { kind: "service", principal: pay.tool.service, reason: "throttled" },
      });
      const inFlight = asked.length;
      await passTo(runs, retryAfterMs - 5_000);
      expect(asked).toHaveLength(inFlight);
      await passUntilDone(runs, { ms: retryAfterMs + 1_000, stepMs: retryAfterMs / 2 });
      await expectOnceEach(runs);
      const turnedAway = asked.filter(({ answer }) => answer === "throttled");
      expect(turnedAway.length - inFlight).toBeLessThan(probes);
      // No call before the time that the last answer allowed.
      for (const { atMs } of asked.slice(inFlight)) {
        const last = turnedAway.filter((each) => each.atMs < atMs).at(-1);
        expect(atMs - (last?.atMs ?? 0)).toBeGreaterThanOrEqual(retryAfterMs);
      }
      expect((await listServices(fleet.store)).map(({ name }) => name)).not.toContain(pay.tool.service);
    },
  );

  test("without saying for how long: the probes become rarer, and all complete", async () => {
    const { asked, behave } = await aProvider(1_200_000, null);
    const pay = aTool("pay", { effect: KEY, behave });
    const runs = await begin(pay, 8);
    await passUntilDone(runs, { ms: 2_000, stepMs: 60_000 });
    await expectOnceEach(runs);
    const probes = asked.filter(({ answer }) => answer === "throttled");
    // Twenty minutes with a pause that doubles up to five.
    expect(probes.length).toBeLessThanOrEqual(SLOTS + 12);
  });
});

describe("runs that share a service which cannot be reached", LONG, () => {
  test("wait for it once it has failed five times in a row, and its probes cost them no tries", async () => {
    const start = await nowMs();
    let isDown = true;
    const sent: number[] = [];
    const behave: Behaviour = async () => {
      sent.push((await nowMs()) - start);
      if (isDown) throw new ToolError("down", { errorClass: "transient", code: "http_503" });
      return "paid";
    };
    const pay = aTool("pay", { effect: KEY, behave, retries: 5 });
    const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
    await fleet.start(agent, { slots: 1 });
    const runs = [await fleet.submit(agent), await fleet.submit(agent), await fleet.submit(agent)];
    await untilQuiet(runs);
    expect(sent).toHaveLength(5);
    const [service] = (await listServices(fleet.store)).filter(({ name }) => name === pay.tool.service);
    expect(service).toMatchObject({ reason: "unavailable", failures: 5 });
    // An hour: far more probes than a run has tries.
    for (let ms = 6_000; ms < 3_600_000; ms = ms * 2 + 11_000) await passTo(runs, ms);
    expect(sent.length).toBeGreaterThan(8);
    isDown = false;
    await passUntilDone(runs, { ms: 7_300_000, stepMs: 400_000 });
    expect(await statuses(runs)).toEqual(["completed", "completed", "completed"]);
  });

  test("a success in between begins the count anew", async () => {
    let times = 0;
    const behave: Behaviour = async () => {
      times += 1;
      if (times % 3 !== 0) throw new ToolError("down", { errorClass: "transient", code: "http_503" });
      return "paid";
    };
    const pay = aTool("pay", { effect: "read", behave, retries: 2 });
    const script = [1, 2, 3, 4].map((order) => ({ calls: [ask("pay", String(order))] }));
    const agent = aDesk([...script, { text: "done" }], [pay]);
    await fleet.start(agent);
    const run = await fleet.submit(agent);
    await fleet.untilStatus(run.id, "completed");
    expect(times).toBe(12);
    expect((await fleet.rows("transitions", run.id)).map(({ to_status: status }) => status)).not.toContain(
      "waiting_dependency",
    );
  });
});

test("a service that turns a call away, and asks for no wait, is left alone for a while all the same", async () => {
  const pay = aTool("pay", {
    effect: KEY,
    behave: async (times) => {
      if (times > 20) return "paid";
      throw new ToolError("not now", { errorClass: "throttled", code: "http_429", retryAfterMs: 0 });
    },
  });
  const agent = aDesk([{ calls: [ask("pay")] }, { text: "done" }], [pay]);
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  await fleet.untilStatus(id, "waiting_dependency", "completed");
  expect(pay.executed).toHaveLength(1);
});
