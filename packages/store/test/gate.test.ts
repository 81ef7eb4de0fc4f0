import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openGate } from "../src/gate.ts";
import { openLanes } from "../src/lanes.ts";

/** Asks so many for a place, and gives the order in which they got one, with what each leaves by. */
function asked(places: number, count: number, patienceMs = 3_600_000) {
  const gate = openGate({ places, patienceMs });
  const entered: number[] = [];
  const leaves: (() => void)[] = [];
  for (let n = 0; n < count; n += 1) {
    gate.enter((leave) => {
      entered.push(n);
      leaves[n] = leave;
    });
  }
  return { gate, entered, leaves };
}

test("as many are in at once as there are places, and the others come in the order of asking", () => {
  const { entered, leaves } = asked(2, 5);
  expect(entered).toEqual([0, 1]);
  leaves[1]?.();
  expect(entered).toEqual([0, 1, 2]);
  leaves[0]?.();
  leaves[2]?.();
  expect(entered).toEqual([0, 1, 2, 3, 4]);
});

test("who leaves twice gives one place back", () => {
  const { entered, leaves } = asked(1, 3);
  leaves[0]?.();
  leaves[0]?.();
  expect(entered).toEqual([0, 1]);
});

describe("who stays for longer than its patience", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("gives up its place, and no second one when it leaves", () => {
    const { gate, entered, leaves } = asked(1, 2, 20);
    vi.advanceTimersByTime(19);
    expect(entered).toEqual([0]);
    vi.advanceTimersByTime(1);
    expect(entered).toEqual([0, 1]);
    leaves[0]?.();
    gate.enter(() => entered.push(2));
    expect(entered).toEqual([0, 1]);
    leaves[1]?.();
    expect(entered).toEqual([0, 1, 2]);
  });

  test("keeps the lanes of others from nothing", async () => {
    const gate = openGate({ places: 1, patienceMs: 20 });
    const lane = (send: () => Promise<readonly string[]>) =>
      openLanes<string, string>({
        ...{ lanes: 1, limit: 1, gate, keyOf: String, send },
        settle: () => Promise.reject(new Error("nothing is missed")),
        onBatch: () => undefined,
      });
    const stuck = Promise.withResolvers<readonly string[]>();
    const held = lane(() => stuck.promise)("held");
    await nextTurn();
    const other = lane(async () => ["moved"])("other");
    await nextTurn();
    vi.advanceTimersByTime(20);
    expect(await other).toBe("moved");
    stuck.resolve(["late"]);
    expect(await held).toBe("late");
  });
});
