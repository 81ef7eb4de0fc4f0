import { describe, expect, test } from "vitest";
import { type Reading, subtract } from "../counters.ts";
import { parseTimes } from "../server-cpu.ts";
import { stepsOf } from "../work.ts";

const FIRST: Reading = {
  transactions: 100,
  statements: 90,
  walBytes: 5_000,
  storedBytes: 8_192,
  nodeSeconds: 1.5,
  postgresSeconds: 2,
  redisSeconds: 0.25,
  own: 7,
};

describe("subtract", () => {
  test("leaves out what the later reading and the benchmark itself have sent", () => {
    const later = { ...FIRST, transactions: 150, statements: 142, walBytes: 9_000, nodeSeconds: 2, own: 9 };
    expect(subtract(later, FIRST, 11)).toEqual({
      transactions: 30,
      statements: 32,
      walBytes: 4_000,
      storedBytes: 0,
      nodeSeconds: 0.5,
      postgresSeconds: 0,
      redisSeconds: 0,
    });
  });

  test("does not know a time that the system does not tell", () => {
    const used = subtract({ ...FIRST, postgresSeconds: null }, FIRST, 0);
    expect(used.postgresSeconds).toBeNull();
    expect(used.redisSeconds).toBe(0);
  });
});

test("the times of a process are read whatever its name is", () => {
  const stat = `4711 (a (b) c) S 42 4711 4711 0 -1 4194560 1 2 3 4 150 50 300 100 20 0 1 0 99 1 2`;
  expect(parseTimes(stat)).toEqual({ parent: 42, own: 2, ended: 4 });
});

test.each([
  { work: { turns: 1, calls: 10 }, steps: 12 },
  { work: { turns: 0, calls: 0 }, steps: 1 },
  { work: { turns: 499, calls: 1 }, steps: 999 },
])("a run of $work has $steps steps", ({ work, steps }) => {
  expect(stepsOf(work)).toBe(steps);
});
