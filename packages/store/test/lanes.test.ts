// The lanes alone: their statements are promises that fast-check's scheduler resolves in any order.

import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openGate } from "../src/gate.ts";
import { type LaneReport, openLanes } from "../src/lanes.ts";

interface Item {
  readonly key: string;
  readonly id: number;
  /** How its batch answers for it. */
  readonly fate: "moved" | "missed" | "error";
}

const MOVED = "moved";
const SETTLED = "settled";
/** Longer than any test: nobody gives up a place. */
const PATIENCE_MS = 3_600_000;
const openDoor = () => openGate({ places: 9, patienceMs: PATIENCE_MS });

/** What is handed in, turn by turn of the loop, and which statements fail as a whole. */
const plays = fc.record({
  lanes: fc.integer({ min: 1, max: 3 }),
  places: fc.integer({ min: 1, max: 4 }),
  limit: fc.integer({ min: 1, max: 4 }),
  turns: fc.array(
    fc.array(
      fc.record({
        key: fc.constantFrom("a", "b", "c", "d", "e"),
        fate: fc.constantFrom<Item["fate"]>("moved", "moved", "moved", "missed", "error"),
      }),
      { maxLength: 6 },
    ),
    { minLength: 1, maxLength: 6 },
  ),
  failing: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
});

type Play = typeof plays extends fc.Arbitrary<infer Value> ? Value : never;

interface Sending {
  readonly items: readonly Item[];
  readonly done: PromiseWithResolvers<void>;
}

/** Lanes whose statements end when they are told to, with all that can be seen of them from outside. */
function openWatched({ lanes, places, limit, failing }: Omit<Play, "turns">) {
  const underWay: Sending[] = [];
  const sent: (readonly Item[])[] = [];
  const settled: { readonly item: Item; readonly missed: Error | null }[] = [];
  const reports: LaneReport[] = [];
  const wrong: string[] = [];
  const handIn = openLanes<Item, string>({
    lanes,
    limit,
    gate: openGate({ places, patienceMs: PATIENCE_MS }),
    keyOf: ({ key }) => key,
    async send(items) {
      const fails = failing[sent.length % failing.length] === true;
      sent.push(items);
      const sending: Sending = { items, done: Promise.withResolvers() };
      underWay.push(sending);
      const keys = underWay.flatMap((each) => each.items.map(({ key }) => key));
      if (new Set(keys).size < keys.length) wrong.push(`of one key at once: ${keys.join()}`);
      if (underWay.length > Math.min(lanes, places)) wrong.push(`${underWay.length} statements at once`);
      if (items.length > limit || items.length === 0) wrong.push(`a statement of ${items.length}`);
      await sending.done.promise;
      underWay.splice(underWay.indexOf(sending), 1);
      if (fails) throw new Error("the statement failed");
      return items.map(({ id, fate }) => {
        if (fate === "missed") return null;
        return fate === "error" ? new Error(`item ${id}`) : `${MOVED} ${id}`;
      });
    },
    async settle(item, missed) {
      settled.push({ item, missed });
      return `${SETTLED} ${item.id}`;
    },
    onBatch: (report) => reports.push(report),
  });
  return { handIn, underWay, sent, settled, reports, wrong };
}

/** All turns that are due have been taken: what could be sent has been. */
async function untilStill(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await nextTurn();
}

/** Hands in all of a play while its statements end in the scheduler's order; gives what came of it. */
async function playOut(play: Play, scheduler: fc.Scheduler) {
  const watched = openWatched(play);
  const items: Item[] = [];
  const answers = new Map<number, string[]>();
  const answered: Promise<void>[] = [];
  let left = play.turns.length;
  const endOne = async (choice: number): Promise<void> => {
    watched.underWay[choice % Math.max(1, watched.underWay.length)]?.done.resolve();
    await untilStill();
  };
  for (const [turn, handed] of play.turns.entries()) {
    void scheduler.schedule(Promise.resolve(), `turn ${turn}`).then(() => {
      left -= 1;
      for (const each of handed) {
        const item = { ...each, id: items.length };
        items.push(item);
        const note = (answer: string) => void answers.set(item.id, [...(answers.get(item.id) ?? []), answer]);
        answered.push(watched.handIn(item).then(note));
      }
    });
    // As many ends as items: some come before anything is under way, and do nothing.
    for (const [n] of handed.entries()) {
      void scheduler.schedule(Promise.resolve(), `end ${turn}.${n}`).then(() => endOne(n));
    }
  }
  await scheduler.waitIdle();
  await untilStill();
  while (watched.underWay.length > 0) await endOne(0);
  await Promise.all(answered);
  return { ...watched, items, answers, left };
}

test("whatever ends first, each item is sent once, in the order of its key, and settled by its own answer", async () => {
  const property = fc.asyncProperty(plays, fc.scheduler(), async (play, scheduler) => {
    const { items, sent, settled, answers, reports, wrong, left } = await playOut(play, scheduler);
    expect(left).toBe(0);
    expect(wrong).toEqual([]);
    expect(sent.flat().toSorted((a, b) => a.id - b.id)).toEqual(items);
    for (const [key, own] of Map.groupBy(sent.flat(), (item) => item.key)) {
      expect(own, `key ${key}`).toEqual(items.filter((item) => item.key === key));
    }
    const failed = new Set(sent.flatMap((batch, n) => (play.failing[n % play.failing.length] === true ? batch : [])));
    const isMissed = (item: Item) => failed.has(item) || item.fate !== "moved";
    const missedOf = (item: Item): string | null => {
      if (failed.has(item)) return "the statement failed";
      return item.fate === "error" ? `item ${item.id}` : null;
    };
    for (const item of items) {
      expect(answers.get(item.id)).toEqual([`${isMissed(item) ? SETTLED : MOVED} ${item.id}`]);
    }
    expect(settled.map(({ item }) => item.id).toSorted((a, b) => a - b)).toEqual(
      items.filter(isMissed).map(({ id }) => id),
    );
    expect(settled.map(({ missed }) => missed?.message ?? null)).toEqual(settled.map(({ item }) => missedOf(item)));
    expect(reports.map(({ size }) => size).reduce((total, size) => total + size, 0)).toBe(items.length);
    expect(reports.reduce((total, { splitOff }) => total + splitOff, 0)).toBe(settled.length);
  });
  await fc.assert(property);
});

test("nothing waits while a lane and a place are free, but for an earlier one of its own key", async () => {
  const property = fc.asyncProperty(plays, async (play) => {
    const { handIn, underWay, sent } = openWatched(play);
    const items: Item[] = [];
    for (const handed of play.turns) {
      for (const each of handed) {
        const item = { ...each, id: items.length };
        items.push(item);
        void handIn(item);
      }
      await untilStill();
      const waiting = items.filter((item) => !sent.flat().includes(item));
      const busy = new Set(underWay.flatMap((each) => each.items.map(({ key }) => key)));
      if (underWay.length < Math.min(play.lanes, play.places))
        expect(waiting.filter(({ key }) => !busy.has(key))).toEqual([]);
      underWay.at(0)?.done.resolve();
      await untilStill();
    }
    while (underWay.length > 0) {
      underWay.at(0)?.done.resolve();
      await untilStill();
    }
    expect(sent.flat()).toHaveLength(items.length);
  });
  await fc.assert(property);
});

test("what is handed in within one turn of the loop is sent together, up to the limit", async () => {
  const { handIn, underWay, sent } = openWatched({ lanes: 2, places: 2, limit: 3, failing: [false] });
  const all = ["a", "b", "c", "d", "a", "e", "f"].map((key, id) => handIn({ key, id, fate: "moved" }));
  await untilStill();
  const idsOf = () => sent.map((batch) => batch.map(({ id }) => id));
  expect(idsOf()).toEqual([
    [0, 1, 2],
    [3, 5, 6],
  ]);
  underWay[0]?.done.resolve();
  await untilStill();
  expect(idsOf().at(-1)).toEqual([4]);
  for (const { done } of [...underWay]) done.resolve();
  expect(await Promise.all(all)).toEqual(all.map((_, id) => `${MOVED} ${id}`));
});

test("an item whose settling takes for ever keeps its lane from nobody", async () => {
  const handIn = openLanes<number, string>({
    lanes: 1,
    limit: 10,
    gate: openDoor(),
    keyOf: String,
    send: async (items) => items.map((item) => (item === 0 ? null : MOVED)),
    settle: () => new Promise(() => undefined),
    onBatch: () => undefined,
  });
  void handIn(0);
  expect(await handIn(1)).toBe(MOVED);
  expect(await handIn(2)).toBe(MOVED);
});

test("an item whose settling fails is rejected by its own error, and nobody else", async () => {
  const handIn = openLanes<number, string>({
    lanes: 1,
    limit: 10,
    gate: openDoor(),
    keyOf: String,
    send: () => Promise.reject(new Error("the statement failed")),
    settle: async (item, missed) => {
      if (item === 1) throw new Error("refused");
      return `${SETTLED} ${item}: ${missed?.message}`;
    },
    onBatch: () => undefined,
  });
  const [first, second] = await Promise.allSettled([handIn(0), handIn(1)]);
  expect(first).toEqual({ status: "fulfilled", value: `${SETTLED} 0: the statement failed` });
  expect(second).toMatchObject({ status: "rejected", reason: { message: "refused" } });
});
