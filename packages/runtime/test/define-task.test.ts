import { describe, expect, test } from "vitest";
import { defineTask } from "../src/index.ts";

const NAMED = { name: "ci-build", version: "1", description: "Builds a branch" };

describe("defineTask", () => {
  test("fills in the usual terms", () => {
    expect(defineTask(NAMED)).toEqual({
      name: "ci-build",
      version: "1",
      terms: {
        description: "Builds a branch",
        heartbeatMs: 60_000,
        graceMs: 60_000,
        onFailure: "operator",
        retries: 1,
      },
    });
  });

  test("takes its own", () => {
    const own = { heartbeatMs: 86_400_000, graceMs: 0, onFailure: "end", retries: 0 } as const;
    expect(defineTask({ ...NAMED, ...own }).terms).toEqual({ description: "Builds a branch", ...own });
  });

  test.each([
    [{ name: "CI Build" }, 'Task name "CI Build": use a-z, 0-9 and -, at most 64, letter first'],
    [{ version: "v 1" }, 'Task ci-build: version "v 1" may have letters, digits, . _ -'],
    [{ heartbeatMs: 999 }, "Task ci-build: heartbeatMs is 999; it must be a whole number from 1000 to 604800000"],
    [{ graceMs: -1 }, "Task ci-build: graceMs is -1; it must be a whole number from 0 to 604800000"],
    [{ retries: 101 }, "Task ci-build: retries is 101; it must be a whole number from 0 to 100"],
    [{ description: "" }, "Task ci-build: its description has 0 characters; 1 to 2000"],
  ])("refuses %j", (mistake, message) => {
    expect(() => defineTask({ ...NAMED, ...mistake })).toThrow(new TypeError(message));
  });
});
