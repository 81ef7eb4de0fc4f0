import { describe, expect, test } from "vitest";
import { local, relative, withLocalTimes } from "../src/times.ts";

const NOW = new Date("2026-11-30T12:00:00.000Z");
const after = (ms: number) => new Date(NOW.getTime() + ms).toISOString();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("relative", () => {
  test.each([
    [0, "now"],
    [999, "now"],
    [1_000, "in 1 s"],
    [-59_999, "59 s ago"],
    [MINUTE, "in 1 min"],
    [HOUR - 1, "in 59 min"],
    [24 * HOUR - 1, "in 23 h"],
    [-47 * HOUR, "47 h ago"],
    [48 * HOUR, "in 2 d"],
    [-9 * 24 * HOUR, "9 d ago"],
  ])("%i ms: %s", (ms, words) => {
    expect(relative(after(ms), NOW)).toBe(words);
  });
});

describe("withLocalTimes", () => {
  test("gives the distance of instants that are ahead, and only of these", () => {
    const past = after(-HOUR);
    const ahead = after(23 * HOUR);
    expect(withLocalTimes(`Waits since ${past}, until ${ahead}.`, NOW)).toBe(
      `Waits since ${local(past)}, until ${local(ahead)} (in 23 h).`,
    );
  });

  test("leaves other text alone", () => {
    expect(withLocalTimes("version 2026-11-30, order 4411", NOW)).toBe("version 2026-11-30, order 4411");
  });
});
