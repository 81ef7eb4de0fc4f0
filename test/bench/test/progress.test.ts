import { describe, expect, test } from "vitest";
import { costBetween, type Point } from "../progress.ts";

const at = (steps: number, seconds: number, walBytes = 0): Point => ({
  steps,
  seconds,
  walBytes,
  statements: steps / 10,
});

describe("costBetween", () => {
  test("is the mean over its part, between the points where none was taken", () => {
    const points = [at(0, 0), at(100, 1, 1_000), at(200, 3, 3_000), at(300, 6, 6_000)];
    expect(costBetween(points, 50, 150)).toEqual({ seconds: 0.015, walBytes: 15, statements: 0.1 });
    expect(costBetween(points, 200, 300).seconds).toBeCloseTo(0.03);
  });

  test("does not know what lies behind its last point", () => {
    expect(() => costBetween([at(0, 0), at(100, 1)], 50, 150)).toThrow(RangeError);
  });

  test("stands the same point twice", () => {
    expect(costBetween([at(0, 0), at(0, 1), at(100, 2)], 0, 100).seconds).toBeCloseTo(0.02);
  });
});
