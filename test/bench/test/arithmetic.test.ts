import { describe, expect, test } from "vitest";
import { median, percentile } from "../arithmetic.ts";

describe("median", () => {
  test.each([
    { values: [7], middle: 7 },
    { values: [30, 1, 2], middle: 2 },
    { values: [4, 1, 3, 100], middle: 3.5 },
    { values: [9, 10, 100, 1_000, 2], middle: 10 }, // by number, not by text
  ])("of $values is $middle", ({ values, middle }) => {
    expect(median(values)).toBe(middle);
  });

  test("leaves the values in their order", () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
  });

  test("of nothing is refused", () => {
    expect(() => median([])).toThrow(RangeError);
  });
});

describe("percentile", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

  test.each([
    { share: 0.5, value: 50 },
    { share: 0.99, value: 99 },
    { share: 1, value: 100 },
    { share: 0, value: 1 },
  ])("$share of one to a hundred is $value", ({ share, value }) => {
    expect(percentile(hundred, share)).toBe(value);
  });

  test("of one value is that value", () => {
    expect(percentile([5], 0.99)).toBe(5);
  });

  test("of nothing is refused", () => {
    expect(() => percentile([], 0.5)).toThrow(RangeError);
  });
});
