import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  coveredByAll,
  emptiedParts,
  type HistoryPart,
  missingRanges,
  periodStart,
  widthOf,
} from "../src/partitions-plan.ts";

const DAY_MS = 86_400_000;
const at = (day: string): number => Date.parse(`${day}T00:00:00Z`);

function aPart(from: string | null, to: string, more: Partial<HistoryPart> = {}): HistoryPart {
  const lowerMs = from === null ? null : at(from);
  return {
    history: "steps",
    name: `steps_${from}`,
    isDefault: false,
    lowerMs,
    upperMs: at(to),
    sizeBytes: 8_192,
    ...more,
  };
}

const DEFAULT: HistoryPart = {
  history: "steps",
  name: "steps_rest",
  isDefault: true,
  lowerMs: null,
  upperMs: null,
  sizeBytes: 0,
};

const shown = (parts: readonly HistoryPart[], now: string, keptDays = 30) =>
  missingRanges({ nowMs: at(now), keptDays, parts }).map(({ lowerMs, upperMs }) =>
    [lowerMs, upperMs].map((ms) => new Date(ms).toISOString().slice(0, 10)),
  );

describe("missingRanges", () => {
  test("asks for this month and the next, across the end of a year", () => {
    expect(shown([DEFAULT], "2026-12-31")).toEqual([
      ["2026-12-01", "2027-01-01"],
      ["2027-01-01", "2027-02-01"],
    ]);
  });

  test("goes on where the last partition ends, and asks for nothing when the next period is there", () => {
    expect(shown([DEFAULT, aPart(null, "2026-12-01")], "2026-11-30")).toEqual([["2026-12-01", "2027-01-01"]]);
    expect(shown([DEFAULT, aPart(null, "2027-01-01")], "2026-11-30")).toEqual([]);
  });

  test("leaves out the time in which nobody has made any", () => {
    expect(shown([DEFAULT, aPart(null, "2026-03-01")], "2026-11-30")[0]).toEqual(["2026-11-01", "2026-12-01"]);
  });

  test("makes partitions as wide as runs are kept, beginning where the narrow ones end", () => {
    expect([30, 60, 61, 180, 181, 36_500].map(widthOf)).toEqual([1, 1, 3, 3, 12, 12]);
    expect(shown([DEFAULT, aPart(null, "2026-12-01")], "2026-11-30", 90)).toEqual([
      ["2026-12-01", "2027-01-01"],
      ["2027-01-01", "2027-04-01"],
    ]);
  });

  test("judges each history by its own partitions", () => {
    const calls = { history: "calls" };
    const parts = [DEFAULT, aPart(null, "2027-01-01"), { ...DEFAULT, ...calls }, aPart(null, "2026-12-01", calls)];
    expect(missingRanges({ nowMs: at("2026-11-30"), keptDays: 30, parts }).map(({ history }) => history)).toEqual([
      "calls",
    ]);
    expect(coveredByAll(parts)).toBe(at("2026-12-01"));
  });

  test("whenever it is looked, the ranges join, overlap nothing, and cover the present and what follows", () => {
    const first = fc.integer({ min: at("2020-01-01"), max: at("2090-01-01") });
    const looks = fc.array(
      fc.record({ pause: fc.integer({ min: 1, max: 120 }), keptDays: fc.integer({ min: 1, max: 400 }) }),
      {
        maxLength: 20,
      },
    );
    fc.assert(
      fc.property(first, looks, (firstMs, all) => {
        let parts: readonly HistoryPart[] = [DEFAULT];
        let nowMs = firstMs;
        for (const { pause, keptDays } of all) {
          for (const { lowerMs, upperMs } of missingRanges({ nowMs, keptDays, parts })) {
            expect(upperMs).toBeGreaterThan(lowerMs);
            expect(parts.every((part) => part.isDefault || (part.upperMs ?? 0) <= lowerMs)).toBe(true);
            parts = [...parts, { ...DEFAULT, isDefault: false, lowerMs, upperMs }];
          }
          const isNow = ({ lowerMs, upperMs }: HistoryPart) =>
            lowerMs !== null && lowerMs <= nowMs && (upperMs ?? 0) > nowMs;
          expect(parts.filter(isNow)).toHaveLength(1);
          expect(coveredByAll(parts)).toBeGreaterThanOrEqual(periodStart(nowMs, widthOf(keptDays), 2));
          nowMs += pause * DAY_MS;
        }
      }),
    );
  });
});

describe("emptiedParts", () => {
  test("takes partitions of the past without a page, and no others", () => {
    const past = aPart(null, "2026-10-01", { sizeBytes: 0 });
    const used = aPart("2026-10-01", "2026-11-01");
    const present = aPart("2026-11-01", "2026-12-01", { sizeBytes: 0 });
    const facts = { nowMs: at("2026-11-30"), keptDays: 30, parts: [DEFAULT, past, used, present] };
    expect(emptiedParts(facts)).toEqual([past]);
  });
});
