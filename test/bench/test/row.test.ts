import { describe, expect, test } from "vitest";
import { describeGoal, type Goal, goal, rowOf } from "../row.ts";

const MEASURE = { figure: "durable steps", queue: "redis", unit: "steps/s" } as const;

describe("rowOf", () => {
  test("takes the median of each, and of the rounds' own ratios", () => {
    const row = rowOf(MEASURE, [
      { value: 50, ceiling: 100 },
      { value: 90, ceiling: 300 },
      { value: 60, ceiling: 80 },
    ]);
    // Not 60 / 100, the ratio of the medians: the first round's ratio is the middle one.
    expect(row).toMatchObject({ value: 60, ceiling: 100, ratio: 0.5, goal: null, met: null });
  });

  test("has no ratio where one round has no ceiling", () => {
    const row = rowOf(MEASURE, [
      { value: 50, ceiling: 100 },
      { value: 50, ceiling: null },
    ]);
    expect(row).toMatchObject({ value: 50, ceiling: null, ratio: null });
  });

  test.each<{ wanted: Goal; met: boolean }>([
    { wanted: goal("ratio", "at least", 0.5), met: true },
    { wanted: goal("ratio", "at least", 0.51), met: false },
    { wanted: goal("ratio", "at most", 0.5), met: true },
    { wanted: goal("value", "at most", 49), met: false },
    { wanted: goal("value", "at least", 50), met: true },
    {
      wanted: {
        all: [
          { of: "value", is: "at most", than: 50 },
          { of: "ratio", is: "at most", than: 0.4 },
        ],
      },
      met: false,
    },
    {
      wanted: {
        any: [
          { of: "value", is: "at most", than: 50 },
          { of: "ratio", is: "at most", than: 0.4 },
        ],
      },
      met: true,
    },
  ])("50 of 100 meets $wanted: $met", ({ wanted, met }) => {
    expect(rowOf({ ...MEASURE, goal: wanted }, [{ value: 50, ceiling: 100 }]).met).toBe(met);
  });

  test("a ratio that could not be taken meets no goal", () => {
    const wanted = goal("ratio", "at most", 100);
    expect(rowOf({ ...MEASURE, goal: wanted }, [{ value: 50, ceiling: null }]).met).toBe(false);
  });
});

test("a goal is told in words", () => {
  expect(describeGoal(goal("ratio", "at least", 0.65), "steps/s")).toBe("ratio ≥ 0.65");
  const cpu: Goal = {
    any: [
      { of: "value", is: "at most", than: 0.15 },
      { of: "ratio", is: "at most", than: 2 },
    ],
  };
  expect(describeGoal(cpu, "s")).toBe("≤ 0.15 s or ratio ≤ 2");
});
