import { expect, test } from "vitest";
import { ATTEMPTS_LIMIT, retryInMs } from "../src/index.ts";

test("a delivery is tried ever more rarely, four hours apart at most, for about a day", () => {
  const delays = Array.from({ length: ATTEMPTS_LIMIT - 1 }, (_, index) => retryInMs(index + 1) ?? Number.NaN);
  expect(delays.slice(0, 4)).toEqual([10_000, 30_000, 90_000, 270_000]);
  expect(delays.toSorted((a, b) => a - b)).toEqual(delays);
  expect(Math.max(...delays)).toBe(4 * 3_600_000);
  const hours = delays.reduce((sum, each) => sum + each, 0) / 3_600_000;
  expect(hours).toBeGreaterThan(22);
  expect(hours).toBeLessThan(25);
  expect(retryInMs(ATTEMPTS_LIMIT)).toBeNull();
  expect(retryInMs(ATTEMPTS_LIMIT + 5)).toBeNull();
});
