import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { withResults } from "../document.ts";
import type { Figure } from "../figure.ts";
import { FIGURES } from "../figures.ts";
import { readOptions } from "../options.ts";
import { missed, type Report, renderReport } from "../report.ts";
import { goal, rowOf } from "../row.ts";

const NAMES: readonly Figure[] = ["throughput", "fleet"].map((name) => ({ name, measures: "", run: async () => [] }));

const row = (than: number) =>
  rowOf({ figure: "durable steps", queue: "redis", unit: "steps/s", goal: goal("ratio", "at least", than) }, [
    { value: 12_345.6, ceiling: 20_000 },
  ]);

const report: Report = {
  generatedAt: "2026-01-02T03:04Z",
  machine: {
    cpu: "a processor",
    cores: 2,
    memoryGb: 8,
    system: "Linux",
    node: "24.0.0",
    postgres: "18.4",
    redis: null,
    revision: "abc1234",
  },
  settings: { rounds: 3, quick: false, queues: ["redis"], profileDir: null },
  results: [{ figure: { name: "throughput", measures: "It measures." }, rows: [row(0.6), row(0.7)] }],
};

describe("the report", () => {
  test("shows each figure beside its ceiling, its goal and whether it is met", () => {
    const text = renderReport(report);
    expect(text).toContain("Generated 2026-01-02T03:04Z at revision abc1234: 3 rounds, medians.");
    expect(text).toContain("no Redis");
    const cells = (line: string) => line.split("|").map((cell) => cell.trim());
    const lines = text.split("\n").filter((line) => line.startsWith("| durable"));
    expect(lines.map(cells)).toEqual([
      ["", "durable steps", "redis", "12 346 steps/s", "20 000", "0.62", "ratio ≥ 0.6", "yes", ""],
      ["", "durable steps", "redis", "12 346 steps/s", "20 000", "0.62", "ratio ≥ 0.7", "**no**", ""],
    ]);
  });

  test("names the goals that were not reached", () => {
    expect(missed(report)).toEqual([expect.stringContaining("ratio ≥ 0.7")]);
  });

  test("goes between the marks of BENCHMARKS.md, and leaves the rest as it is", () => {
    const document = readFileSync(new URL("../../../BENCHMARKS.md", import.meta.url), "utf8");
    const written = withResults(document, "new results");
    expect(withResults(written, "newer results")).toBe(withResults(document, "newer results"));
    expect(written).toContain("\n\nnew results\n\n");
    expect(written.slice(0, 500)).toBe(document.slice(0, 500));
  });

  test.each(["", "<!-- results: end -->"])("goes into no document without the marks", (document) => {
    expect(() => withResults(document, "results")).toThrow("BENCHMARKS.md");
  });
});

describe("readOptions", () => {
  const known = { known: NAMES, hasRedis: true };

  test("plays everything three times on both queues if nothing else is said", () => {
    expect(readOptions([], known)).toEqual({
      settings: { rounds: 3, quick: false, queues: ["redis", "postgres"], profileDir: null },
      figures: NAMES,
      json: null,
      write: false,
    });
  });

  test("takes what is asked for", () => {
    const args = ["fleet", "--quick", "--rounds", "5", "--queue", "redis", "--json", "a.json", "--profile", "out"];
    expect(readOptions(args, known)).toEqual({
      settings: { rounds: 5, quick: true, queues: ["redis"], profileDir: "out" },
      figures: NAMES.slice(1),
      json: "a.json",
      write: false,
    });
  });

  test("measures Postgres alone without Redis, unless Redis was asked for", () => {
    expect(readOptions([], { ...known, hasRedis: false })?.settings.queues).toEqual(["postgres"]);
    expect(() => readOptions(["--queue", "redis"], { ...known, hasRedis: false })).toThrow("redis-server");
  });

  test.each([["nothing"], ["--rounds", "0"], ["--rounds", "two"], ["--queue", "kafka"], ["--slow"]])(
    "refuses %s",
    (...args) => {
      expect(() => readOptions(args, known)).toThrow();
    },
  );

  test("asked for help it says so", () => {
    expect(readOptions(["--help"], known)).toBeNull();
  });
});

test("figures have different names", () => {
  expect(new Set(FIGURES.map(({ name }) => name)).size).toBe(FIGURES.length);
});
