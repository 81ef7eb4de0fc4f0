import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { type Fleet, isAlive, openFleet } from "./processes.ts";

let fleet: Fleet;

// One each: what a test leaves behind must not be taken up by the next one's processes.
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

/** When the run went from its killed owner to the next, in milliseconds after the kill. */
async function takeover(runId: string, killedAtMs: number): Promise<{ recoveredMs: number; claimedMs: number }> {
  const history = await fleet.history(runId);
  const recovered = history.findIndex(({ event, at_ms }) => event === "OwnerGone" && at_ms >= killedAtMs - 1);
  const claimed = history.findIndex(({ event }, index) => event === "Claimed" && index > recovered);
  expect([recovered, claimed].every((index) => index >= 0)).toBe(true);
  return {
    recoveredMs: Math.round((history[recovered]?.at_ms ?? Number.NaN) - killedAtMs),
    claimedMs: Math.round((history[claimed]?.at_ms ?? Number.NaN) - killedAtMs),
  };
}

function tell(what: string, figures: object): void {
  process.stdout.write(`${what}: ${JSON.stringify(figures)}\n`);
}

describe("a child process is killed", () => {
  test("in the middle of a read: another goes on within 2 s", async () => {
    const worker = await fleet.worker({ processes: 2 });
    fleet.outside.hold("r");
    const [id = ""] = await fleet.submit("look r");
    await fleet.outside.untilAsked("r");
    const pid = await fleet.ownerPid(id);
    const killedAtMs = await fleet.nowMs();
    process.kill(pid, "SIGKILL");
    await fleet.outside.untilAsked("r", 2);
    fleet.outside.release("r");
    await fleet.untilStatus([id], "completed");
    const figures = await takeover(id, killedAtMs);
    tell("takeover after the kill of a child", figures);
    expect(figures.claimedMs).toBeLessThan(2_000);
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  test("after its effect has left: the next one looks it up, and it is done once", async () => {
    const worker = await fleet.worker({ processes: 2 });
    await fleet.sweeper();
    fleet.outside.hold("s");
    const [id = ""] = await fleet.submit("send s");
    // The look before it is held as well.
    await fleet.outside.untilAsked("s");
    fleet.outside.release("s");
    fleet.outside.hold("s");
    await waitFor(() => fleet.outside.ledger.some((entry) => entry.order === "s"), {
      deadlineMs: 20_000,
      what: "the effect",
    });
    process.kill(await fleet.ownerPid(id), "SIGKILL");
    await fleet.untilStatus([id], "completed");
    fleet.outside.release("s");
    expect(fleet.outside.ledger.filter((entry) => entry.order === "s")).toHaveLength(1);
    expect(fleet.outside.looks.filter((each) => each === "s")).toHaveLength(1);
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  test("by one run again and again: it is quarantined after three lost claims, and others go on", async () => {
    await fleet.sweeper();
    const worker = await fleet.worker({ processes: 2, slots: 4 });
    const [guilty = "", ...others] = await fleet.submit("crash", ...Array.from({ length: 12 }, (_, n) => `look x${n}`));
    await fleet.untilStatus(others, "completed");
    await fleet.untilStatus([guilty], "waiting_operator");
    const history = await fleet.history(guilty);
    expect(history.filter(({ event }) => event === "Claimed")).toHaveLength(3);
    const { rows } = await fleet.store.pool.query(
      "select waiting_for->>'reason' as reason from holdpoint.runs where id = $1",
      [guilty],
    );
    expect(rows).toEqual([{ reason: "quarantined" }]);
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });
});

describe("a whole worker", () => {
  test("is killed, its supervisor included: another goes on within lease + grace + one sweep", async () => {
    await fleet.sweeper();
    const doomed = await fleet.worker();
    fleet.outside.hold("w");
    const [id = ""] = await fleet.submit("look w");
    await fleet.outside.untilAsked("w");
    const other = await fleet.worker();
    const pid = await fleet.ownerPid(id);
    const killedAtMs = await fleet.nowMs();
    doomed.process.kill("SIGKILL");
    process.kill(pid, "SIGKILL");
    await fleet.outside.untilAsked("w", 2);
    fleet.outside.release("w");
    await fleet.untilStatus([id], "completed");
    const figures = await takeover(id, killedAtMs);
    tell("takeover after the kill of a whole worker (lease 3000, grace 500, sweep 200)", figures);
    // The sweep passes over all its kinds, and the machine is busy with other tests.
    expect(figures.claimedMs).toBeLessThan(3_000 + 500 + 200 + 800);
    other.process.kill("SIGTERM");
    expect(await other.ended).toBe(0);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "drains at %s, also if it comes twice: runs are given back, exit 0",
    async (signal) => {
      const worker = await fleet.worker({ processes: 2 });
      const pids = (await fleet.workers()).map(({ pid }) => pid);
      fleet.outside.hold("d");
      const [id = ""] = await fleet.submit("look d");
      await fleet.outside.untilAsked("d");
      // A Ctrl-C reaches the whole group; npm passes it on once more.
      for (const target of [worker.process.pid ?? 0, ...pids]) process.kill(target, signal);
      worker.process.kill(signal);
      expect(await worker.ended).toBe(0);
      expect(pids.filter(isAlive)).toEqual([]);
      expect(await fleet.workers()).toEqual([]);
      const history = await fleet.history(id);
      expect(history.map(({ event }) => event)).toEqual(["Submitted", "Claimed", "Released"]);
      fleet.outside.release("d");
      const next = await fleet.worker();
      await fleet.untilStatus([id], "completed");
      next.process.kill("SIGTERM");
      expect(await next.ended).toBe(0);
    },
  );

  test("whose supervisor dies: its children give their runs back and end", async () => {
    const worker = await fleet.worker({ processes: 2 });
    const pids = (await fleet.workers()).map(({ pid }) => pid);
    fleet.outside.hold("o");
    const [id = ""] = await fleet.submit("look o");
    await fleet.outside.untilAsked("o");
    worker.process.kill("SIGKILL");
    await waitFor(() => !pids.some(isAlive), { deadlineMs: 20_000, what: "the children to end" });
    await worker.ended;
    expect((await fleet.history(id)).at(-1)).toMatchObject({ event: "Released", to_status: "queued" });
    expect(worker.output()).not.toMatch(/ERR_|Error:/);
    fleet.outside.release("o");
  });
});
