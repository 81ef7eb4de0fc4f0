import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CHECKS, isNodeNewEnough, pinnedPnpm, reactTo, TASKS, usage } from "../tasks.mjs";

const ROOT = join(import.meta.dirname, "../../..");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

describe("TASKS", () => {
  test.each(Object.entries(TASKS))("%s has a script, a program that exists, and a line in the help", (name, task) => {
    expect(manifest.scripts[name]).toBe(`node infra/bootstrap/run.mjs ${name}`);
    const [program] = task.command([]);
    expect(existsSync(join(ROOT, String(program))), program).toBe(true);
    expect(usage()).toContain(task.summary);
  });

  test("test measures the coverage of a whole run only", () => {
    expect(TASKS.test?.command([])).toContain("--coverage");
    expect(TASKS.test?.command(["packages/core"])).toEqual(["node_modules/vitest/vitest.mjs", "run", "packages/core"]);
  });

  test("every check is a script", () => {
    expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(CHECKS));
  });
});

describe("isNodeNewEnough", () => {
  test.each([
    ["18.20.4", false],
    ["20.0.0", true],
    ["24.21.0", true],
  ])("%s: %s", (version, enough) => {
    expect(isNodeNewEnough(version)).toBe(enough);
  });
});

describe("pinnedPnpm", () => {
  test("takes the exact version, without the checksum behind it", () => {
    expect(pinnedPnpm("pnpm@12.4.2")).toBe("pnpm@12.4.2");
    expect(pinnedPnpm("pnpm@12.4.2+sha512.abc")).toBe("pnpm@12.4.2");
  });

  test.each(["npm@10.0.0", "pnpm@latest", undefined])("refuses %s", (packageManager) => {
    expect(() => pinnedPnpm(packageManager)).toThrow("packageManager");
  });
});

describe("reactTo", () => {
  test("does not repeat the Ctrl-C that the terminal gave the task already", () => {
    expect(reactTo("SIGINT", true)).toBe("wait");
  });

  test("passes on what reached us alone", () => {
    expect(reactTo("SIGINT", false)).toBe("pass on");
    expect(reactTo("SIGTERM", true)).toBe("pass on");
    expect(reactTo("SIGHUP", true)).toBe("pass on");
  });
});
