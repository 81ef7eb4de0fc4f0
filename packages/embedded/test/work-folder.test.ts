import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openWorkFolder } from "../src/index.ts";

test("a work folder is this process's own, and goes with what was left by one that was killed", async () => {
  const dead = spawn(process.execPath, ["--eval", ""]);
  await once(dead, "exit");
  const left = join(tmpdir(), `holdpoint-foldertest-${dead.pid}`);
  const other = join(tmpdir(), `holdpoint-foldertest-${process.ppid}`);
  mkdirSync(left);
  mkdirSync(other);
  const folder = await openWorkFolder("foldertest");
  expect(existsSync(folder.path)).toBe(true);
  expect(existsSync(left)).toBe(false);
  expect(existsSync(other)).toBe(true);
  await folder.remove();
  expect(existsSync(folder.path)).toBe(false);
  rmSync(other, { recursive: true });
});
