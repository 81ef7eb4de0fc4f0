import { loseAndRecover, markExited } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ToolError } from "../src/index.ts";
import { aDesk, ask, aTool } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

type What = "throttled" | "transient" | "lost";

/** Takes the run away from its worker, as if that had died in the middle of the call. */
async function lose(runId: string): Promise<void> {
  const { run } = await fleet.load(runId);
  await markExited(fleet.store, run.state.owner ?? "");
  await loseAndRecover(fleet.store, [{ run, reason: "lease_expired" }], { kind: "sweeper", id: "s1" });
}

// A call has one retry, a run may lose two workers in a row, and being turned away is bounded by the clock alone.
test.each<{ readonly happens: readonly What[]; readonly ends: string }>([
  { happens: [], ends: "completed" },
  { happens: ["transient"], ends: "completed" },
  { happens: ["transient", "transient"], ends: "call_failed" },
  { happens: ["throttled", "throttled", "throttled", "throttled"], ends: "completed" },
  { happens: ["throttled", "transient", "throttled", "throttled"], ends: "completed" },
  // The last one finds out that its service is still in trouble: that is not the run's fault either.
  { happens: ["transient", "throttled", "throttled", "transient"], ends: "completed" },
  { happens: ["lost", "lost"], ends: "completed" },
  { happens: ["lost", "transient", "lost"], ends: "completed" },
  { happens: ["lost", "throttled", "lost", "transient"], ends: "completed" },
  { happens: ["lost", "lost", "lost"], ends: "quarantined" },
])("budgets are spent apart: $happens ends as $ends", async ({ happens, ends }) => {
  const reached: (() => void)[] = [];
  const calls: Promise<void>[] = happens.map(() => new Promise((resolve) => reached.push(resolve)));
  const find = aTool("find", {
    effect: "read",
    behave: async (times, { signal }) => {
      const what = happens[times - 1];
      reached[times - 1]?.();
      if (what === undefined) return "found";
      if (what === "lost") {
        // Ends when the worker learns that it is gone; nobody waits for it.
        await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }
      throw new ToolError("not now", { errorClass: what === "throttled" ? "throttled" : "transient", code: "e" });
    },
  });
  const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
  await fleet.start(agent, { renewMs: 100 });
  const { id } = await fleet.submit(agent);
  let ms = 0;
  for (const [index, what] of happens.entries()) {
    await calls[index];
    if (what === "lost") {
      await lose(id);
      await fleet.start(agent, { renewMs: 100 });
    }
    if (index + 1 >= happens.length) break;
    // The sweeper comes by until the next call is made.
    const goesOn = async () => {
      ms += 60_000;
      await moveClock(fleet.url, ms);
      await fleet.sweep();
      const { run } = await fleet.load(id);
      if (run.state.status === "queued") await fleet.wake(run);
      return find.executed.length > index + 1 || run.state.status === "waiting_operator";
    };
    await waitFor(goesOn, { deadlineMs: 20_000, what: `call ${index + 2}` });
  }
  const hasEnded = async () => {
    ms += 60_000;
    await moveClock(fleet.url, ms);
    await fleet.sweep();
    const { run } = await fleet.load(id);
    if (run.state.status === "queued") await fleet.wake(run);
    return run.state.status === "completed" || run.state.status === "waiting_operator" ? run.state : null;
  };
  const state = await waitFor(hasEnded, { deadlineMs: 20_000, what: "the end" });
  expect(state.waitingFor?.reason ?? state.status).toBe(ends);
  expect(find.executed.length).toBe(ends === "completed" ? happens.length + 1 : happens.length);
});
