import { waitFor } from "@holdpoint/testkit";
import { describe, expect, onTestFinished, test } from "vitest";
import { openLanes } from "../src/fetch-lanes.ts";
import type { TakenJob } from "../src/queue-server.ts";
import { Slots } from "../src/slots.ts";

/** A source of so many jobs whose answers come in turns of the event loop, and the lanes that fetch from it. */
function fetching(options: { readonly jobs: number; readonly slots: number; readonly failAt?: number }) {
  const counts = { taken: 0, delivered: 0, alone: 0, fetching: 0, most: 0 };
  const errors: string[] = [];
  const slots = new Slots(options.slots);
  const stopping = new AbortController();

  async function answered<T>(answer: () => T): Promise<T> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    return answer();
  }
  async function fetched(answer: () => TakenJob | null): Promise<TakenJob | null> {
    counts.fetching += 1;
    counts.most = Math.max(counts.most, counts.fetching);
    return answered(answer).finally(() => {
      counts.fetching -= 1;
    });
  }
  function next(): TakenJob | null {
    if (counts.taken === options.jobs) return null;
    counts.taken += 1;
    return job(counts.taken);
  }
  function job(number: number): TakenJob {
    return {
      id: String(number),
      data: null,
      deadly: false,
      remove: () =>
        answered(() => {
          counts.alone += 1;
        }),
      removeAndTake: () =>
        fetched(() => {
          if (number === options.failAt) throw new Error("not removed");
          return next();
        }),
      giveBack: () =>
        answered(() => {
          counts.taken -= 1;
        }),
    };
  }
  const lanes = openLanes({
    source: { take: () => fetched(next), wait: async () => false, wakesOne: false, close: async () => undefined },
    slots,
    deliver: () => {
      counts.delivered += 1;
    },
    onError: (error) => errors.push(error.message),
    onAnswer: () => undefined,
    stopping: stopping.signal,
    abandoning: new AbortController().signal,
  });
  onTestFinished(() => lanes.settled());
  return { counts, errors, slots, stopping, lanes, fetch: () => slots.tryAcquire() && lanes.fetch() };
}

describe("openLanes", () => {
  test("delivers all that wait, each with a slot, and says that no more wait", async () => {
    const { counts, slots, lanes, fetch } = fetching({ jobs: 60, slots: 100 });
    expect(await fetch()).toBe(true);
    await lanes.settled();
    expect(counts).toMatchObject({ delivered: 60, alone: 0 });
    expect(slots.free).toBe(40);
  });

  test.for([
    [100, 4],
    [24, 2],
    [10, 1],
  ] as const)("with %i slots and many jobs, %i fetches are under way at a time", async ([count, lanesOpen]) => {
    const { counts, fetch, lanes } = fetching({ jobs: 1_000, slots: count });
    await fetch();
    await lanes.settled();
    expect(counts.most).toBe(lanesOpen);
    expect(counts.delivered).toBe(count);
  });

  test("stops at the last slot; the job that got it is removed without a next one", async () => {
    const { counts, slots, lanes, fetch } = fetching({ jobs: 10, slots: 3 });
    expect(await fetch()).toBe(false);
    await lanes.settled();
    expect(counts).toMatchObject({ taken: 3, delivered: 3, alone: 1 });
    expect(slots.free).toBe(0);
  });

  test("a removal that fails is reported, costs no slot, and the rest may wait", async () => {
    const { counts, errors, slots, fetch } = fetching({ jobs: 9, slots: 5, failAt: 2 });
    expect(await fetch()).toBe(false);
    expect(errors).toEqual(["not removed"]);
    expect(counts.delivered).toBe(2);
    expect(slots.free).toBe(3);
  });

  test("what a fetch brings after the stop is given back, with its slot", async () => {
    const { counts, slots, stopping, fetch } = fetching({ jobs: 9, slots: 5 });
    const fetched = fetch();
    await waitFor(() => counts.delivered > 0, { deadlineMs: 5_000, what: "a delivery" });
    stopping.abort();
    expect(await fetched).toBe(false);
    expect(counts.taken).toBe(counts.delivered);
    expect(slots.free).toBe(5 - counts.delivered);
  });
});
