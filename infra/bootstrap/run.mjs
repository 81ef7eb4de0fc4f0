// Starts a task in a fresh clone: with any Node >= 20 and npm it installs everything (once), then runs the task on the
// project's own Node. No dependencies, and nothing that Node 20 does not know.
//
// The task's Node is started here directly, and not through npm, npx or pnpm: these lose exit codes and repeat signals.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isNodeNewEnough, MINIMUM_NODE_MAJOR, pinnedPnpm, reactTo, TASKS, usage } from "./tasks.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const NODE = join(ROOT, "node_modules/node/bin/node");
const STAMP = join(ROOT, "node_modules/.holdpoint-install");

class StepError extends Error {
  /**
   * @param {string} step
   * @param {string} advice
   * @param {ErrorOptions & { exitCode?: number }} [details]
   */
  constructor(step, advice, { cause, exitCode = 1 } = {}) {
    const reason = cause instanceof Error ? ` (${cause.message})` : "";
    super(`holdpoint: this step failed: ${step}${reason}\n  ${advice}`, { cause });
    this.exitCode = exitCode;
  }
}

async function main() {
  const [name = "--help", ...args] = process.argv.slice(2);
  if (name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(usage());
    return;
  }
  if (!isNodeNewEnough(process.versions.node)) {
    const advice = `This is Node ${process.versions.node}; install Node ${MINIMUM_NODE_MAJOR} or newer.`;
    throw new StepError("check the version of Node", advice);
  }
  const task = Object.hasOwn(TASKS, name) ? TASKS[name] : undefined;
  if (task === undefined) throw new StepError(`find the task "${name}"`, usage().trimEnd(), { exitCode: 2 });
  await installIfNeeded();
  await runTask(task.command(args));
}

async function installIfNeeded() {
  const wanted = fingerprint();
  if (existsSync(NODE) && existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return;
  const pnpm = readPinnedPnpm();
  process.stderr.write(`holdpoint: installing with ${pnpm} (once; again only when a package changes)\n`);
  // CI: pnpm asks no questions, such as whether it may replace node_modules.
  const install = {
    file: "npx",
    args: ["-y", pnpm, "install", "--frozen-lockfile"],
    env: { ...process.env, CI: "true" },
  };
  await runStep(
    "install the dependencies",
    install,
    "Read what pnpm says above. A first installation needs the network and the npm registry; then try again.",
  );
  const start = { file: NODE, args: ["--eval", ""], env: process.env };
  await runStep(
    "start the project's own Node",
    start,
    "The `node` package has no program for this machine: see https://nodejs.org for the systems that Node 24 supports.",
  );
  writeFileSync(STAMP, wanted);
}

/** Changes with everything that an installation depends on. */
function fingerprint() {
  const hash = createHash("sha256").update(`${process.platform}-${process.arch}\n`);
  const manifests = ["packages", "apps", "test"].flatMap((folder) => manifestsIn(folder));
  for (const file of ["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", ...manifests.sort()]) {
    hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest("hex");
}

/** @param {string} folder */
function manifestsIn(folder) {
  if (!existsSync(join(ROOT, folder))) return [];
  const files = readdirSync(join(ROOT, folder)).map((name) => join(folder, name, "package.json"));
  return files.filter((file) => existsSync(join(ROOT, file)));
}

function readPinnedPnpm() {
  try {
    return pinnedPnpm(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).packageManager);
  } catch (cause) {
    throw new StepError("read package.json", "Restore it from the repository.", { cause });
  }
}

/**
 * @param {string} step
 * @param {{ file: string, args: string[], env: NodeJS.ProcessEnv }} program
 * @param {string} advice
 */
async function runStep(step, { file, args, env }, advice) {
  const child = spawn(file, args, { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"] });
  const [exitCode, signal] = await ended(child).catch((cause) => {
    const absent = file === "npx" && cause.code === "ENOENT";
    throw new StepError(step, absent ? "npx is missing: install npm, which comes with Node." : advice, { cause });
  });
  if (exitCode !== 0) throw new StepError(step, advice, { cause: new Error(signal ?? `exit code ${exitCode}`) });
}

/** @param {string[]} command */
async function runTask(command) {
  const path = [join(ROOT, "node_modules/.bin"), dirname(NODE), process.env.PATH].join(delimiter);
  const child = spawn(NODE, command, { cwd: ROOT, env: { ...process.env, PATH: path }, stdio: "inherit" });
  /** @type {NodeJS.Signals[]} */
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) {
    process.on(signal, () => {
      if (reactTo(signal, process.stdin.isTTY === true) === "pass on") child.kill(signal);
    });
  }
  const [exitCode, signal] = await ended(child);
  for (const name of signals) process.removeAllListeners(name);
  if (signal !== null) process.kill(process.pid, signal); // end as the task ended
  process.exitCode = exitCode ?? 1;
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<[number | null, NodeJS.Signals | null]>}
 */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (exitCode, signal) => resolve([exitCode, signal]));
  });
}

main().catch((error) => {
  process.stderr.write(error instanceof StepError ? `\n${error.message}\n` : `${error.stack}\n`);
  process.exitCode = error instanceof StepError ? error.exitCode : 1;
});
