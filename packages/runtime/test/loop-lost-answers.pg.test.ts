import type { Store } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDesk, ask, aTool, NEEDS_MANAGER } from "./desk.ts";
import { brokenConnection, faultyStore, type Sending } from "./faulty-store.ts";
import { type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** What the work on a run asks of the database; the rest belongs to its worker. */
const OF_RUNS = /^(claim_runs|load_run|commit_steps|transition|read_back|find_own_runs|report_|pass_)/;

/** How a connection can break: before the statement has reached the server, or after it has taken effect. */
const BREAKS = {
  before: () => Promise.reject(brokenConnection()),
  after: async ({ send }: Sending) => {
    await send();
    throw brokenConnection();
  },
} as const;

/** Twice: it has taken effect, and so does nothing that asks whether it has. */
type How = keyof typeof BREAKS | "twice";

/** The fleet's store, but the n-th statement about a run meets a broken connection. Without n it only counts. */
function breaking(at: number | null, how: How): { readonly store: Store; readonly met: string[] } {
  const met: string[] = [];
  const store = faultyStore(fleet.store, (sending) => {
    if (!OF_RUNS.test(sending.verb)) return sending.send();
    met.push(sending.verb);
    if (met.length === at) return how === "twice" ? BREAKS.after(sending) : BREAKS[how](sending);
    return at !== null && how === "twice" && met.length === at + 1 ? BREAKS.before() : sending.send();
  });
  return { store, met };
}

/** Brings a run to its end: wakes workers as a sweep would, and lets the manager approve. */
async function drive(runId: string): Promise<void> {
  const isDone = async () => {
    const { run } = await fleet.load(runId);
    const { status, owner } = run.state;
    if (status === "waiting_operator") throw new Error(`an operator is asked: ${run.state.waitingFor?.reason}`);
    if (status === "waiting_approval") await fleet.decide(runId, "approve");
    else if (owner === null && (status === "queued" || status === "outcome_unknown")) await fleet.wake(run);
    return status === "completed";
  };
  await waitFor(isDone, { deadlineMs: 20_000, what: "the run to complete" });
}

async function work(at: number | null, how: How) {
  const find = aTool("find", { effect: "read" });
  const pay = aTool("pay", { effect: "unsafe", rules: NEEDS_MANAGER });
  const agent = aDesk([{ calls: [ask("find")] }, { calls: [ask("pay")] }, { text: "done" }], [find, pay]);
  const { store, met } = breaking(at, how);
  const worker = await fleet.start(agent, { store, slots: 1 });
  const { id } = await fleet.submit(agent);
  await drive(id);
  await worker.drain(5_000);
  return { met, pay, id };
}

/** As many as a run needs, as the tests make sure. */
const POINTS = Array.from({ length: 9 }, (_, index) => index + 1);

describe("a run of which one statement meets a broken connection", () => {
  test("has no more statements than are broken below", async () => {
    const { met } = await work(null, "before");
    expect(met).toContain("claim_runs");
    expect(met.filter((verb) => verb === "commit_steps").length).toBeGreaterThan(4);
    // Two claims are needed; a wake-up that comes twice asks once more.
    expect(met.filter((verb) => verb !== "claim_runs")).toHaveLength(POINTS.length - 2);
  });

  const HOWS = [
    { how: "before", when: "before it takes effect" },
    { how: "after", when: "after it took effect" },
    { how: "twice", when: "after it took effect, and the one after that before" },
  ] as const;

  test.each(POINTS.flatMap((at) => HOWS.map((broken) => ({ at, ...broken }))))(
    "number $at, $when: the effect is made once, and the history has no gap",
    async ({ at, how }) => {
      const { met, pay, id } = await work(at, how);
      // Otherwise nothing was broken.
      expect(met.length).toBeGreaterThanOrEqual(at);
      expect(pay.executed).toHaveLength(1);
      const loaded = await fleet.load(id);
      expect(story(loaded)).toEqual([
        "model_reply",
        "find succeeded",
        "model_reply",
        "intent pay 1",
        "pay succeeded",
        "model_reply",
      ]);
      expect(loaded.approvals).toMatchObject([{ state: "spent" }]);
      expect(await fleet.rows("attempts", id, "started_at")).toMatchObject([{ outcome: "succeeded" }]);
    },
  );
});
