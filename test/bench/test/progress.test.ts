import { describe, expect, test } from "vitest";
import { costsOf, type Point } from "../progress.ts";

/** Two runs at one moment. */
const at = (runs: readonly [number, number], seconds: number): Point => ({
  steps: runs[0] + runs[1],
  least: Math.min(...runs),
  most: Math.max(...runs),
  seconds,
  walBytes: 100 * seconds,
  statements: (runs[0] + runs[1]) / 10,
});

/** The second run begins late; the first ends early. */
const POINTS = [
  at([0, 0], 0),
  at([40, 0], 9),
  at([50, 10], 10),
  at([100, 60], 11),
  at([190, 170], 14),
  at([200, 190], 20),
];

describe("costsOf", () => {
  test("compares parts in which every run is at work", () => {
    const { early, late } = costsOf(POINTS, { from: 10, to: 190, steps: 50 });
    // From 60 to 110 steps: half of the second between the third and the fourth point.
    expect(early).toEqual({ seconds: 0.01, walBytes: 1, statements: 0.1 });
    // From 310 to 360 steps: a quarter of the three seconds before the fifth point.
    expect(late.seconds).toBeCloseTo(0.75 / 50);
  });

  test.each([
    { from: 10, to: 190, steps: 200 }, // they would overlap
    { from: 191, to: 199, steps: 1 }, // never were all of them there
  ])("refuses %o where there are no such parts", (parts) => {
    expect(() => costsOf(POINTS, parts)).toThrow(RangeError);
  });

  test("stands the same point twice", () => {
    const twice = POINTS.flatMap((point) => [point, point]);
    expect(costsOf(twice, { from: 10, to: 190, steps: 50 })).toEqual(costsOf(POINTS, { from: 10, to: 190, steps: 50 }));
  });
});
