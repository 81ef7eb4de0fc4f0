// All checks, or the ones named as arguments, one after the other; turbo names each one that fails.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CHECKS, pinnedPnpm } from "../bootstrap/tasks.mjs";

const ROOT = resolve(import.meta.dirname, "../..");

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !CHECKS.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`verify: there is no check "${unknown.join('", "')}"; there are ${CHECKS.join(", ")}\n`);
  process.exit(2);
}

const { packageManager } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const turbo = ["turbo", "run", ...(wanted.length > 0 ? wanted : CHECKS), "--continue", "--concurrency=1"];
// turbo starts scripts with pnpm and looks for it in PATH, which is where npx puts it.
const { status, error } = spawnSync("npx", ["-y", "--prefer-offline", pinnedPnpm(packageManager), "exec", ...turbo], {
  cwd: ROOT,
  env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1", TURBO_NO_UPDATE_NOTIFIER: "1" },
  stdio: "inherit",
});
if (error !== undefined) throw error;
process.exitCode = status ?? 1;
