import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { queueName, wakeUpId } from "../src/index.ts";

const runIds = fc.stringMatching(/^[A-Za-z0-9_-]{1,100}$/);
const naturals = fc.nat({ max: Number.MAX_SAFE_INTEGER });

describe("wakeUpId", () => {
  test("names run, version and, for a repair, the sweep", () => {
    expect(wakeUpId({ runId: "run", version: 7 })).toBe("run-7");
    expect(wakeUpId({ runId: "run", version: 7 }, 12)).toBe("run-7-s12");
  });

  test("gives different wake-ups different ids, and never a colon", () => {
    const wakeUps = fc.tuple(runIds, naturals, fc.option(naturals, { nil: undefined }));
    fc.assert(
      fc.property(wakeUps, wakeUps, (one, other) => {
        const [id, otherId] = [one, other].map(([runId, version, sweep]) => wakeUpId({ runId, version }, sweep));
        expect(id).not.toContain(":");
        expect(id === otherId).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });

  test.for([
    [{ runId: "a:b", version: 1 }, undefined],
    [{ runId: "", version: 1 }, undefined],
    [{ runId: "x".repeat(101), version: 1 }, undefined],
    [{ runId: "a", version: -1 }, undefined],
    [{ runId: "a", version: 1.5 }, undefined],
    [{ runId: "a", version: 1 }, Number.NaN],
  ] as const)("refuses %j with sweep %s", ([wakeUp, sweep]) => {
    expect(() => wakeUpId(wakeUp, sweep)).toThrow(RangeError);
  });
});

describe("queueName", () => {
  test("is readable, safe and short for any name and version", () => {
    expect(queueName({ name: "refund-desk", version: "1.2" })).toMatch(/^refund-desk\.1-2\.[0-9a-f]{32}$/);
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (name, version) => {
        expect(queueName({ name, version })).toMatch(/^[A-Za-z0-9.-]{1,80}$/);
      }),
    );
  });

  test("differs where name or version differ, wherever the border between them is", () => {
    const names = ["a", "a.1", "a-1", "a 1", "A", "ä", ""];
    const all = names.flatMap((name) => names.map((version) => queueName({ name, version })));
    expect(new Set(all).size).toBe(all.length);
  });
});
