import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findNativeDir } from "../src/placement.ts";
import { canEnter } from "../src/server-user.ts";

describe("findNativeDir", () => {
  test("finds the programs for this platform", () => {
    expect(findNativeDir(`${process.platform}-${process.arch}`)).toMatch(/native$/);
  });

  test("names the platforms there are when ours is not among them", () => {
    expect(() => findNativeDir("sunos-x64")).toThrow(
      expect.objectContaining({ code: "UNSUPPORTED_PLATFORM", message: expect.stringContaining("linux-arm64") }),
    );
  });
});

describe("canEnter", () => {
  const stranger = { name: "stranger", uid: 54_321, gid: 54_321 };
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "holdpoint-enter-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("follows the mode of the folder and of every folder above it", () => {
    const inner = join(folder, "inner");
    mkdirSync(inner);
    chmodSync(inner, 0o755);
    chmodSync(folder, 0o700);
    expect(canEnter(stranger, inner)).toBe(false);
    chmodSync(folder, 0o711);
    expect(canEnter(stranger, inner)).toBe(canEnter(stranger, tmpdir()));
    chmodSync(inner, 0o600);
    expect(canEnter(stranger, inner)).toBe(false);
  });
});
