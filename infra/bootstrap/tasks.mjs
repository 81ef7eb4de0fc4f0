// What the bootstrap decides without touching anything: run.mjs does it.

export const MINIMUM_NODE_MAJOR = 20;

/** The parts of `verify`, in order; each is a script of package.json that turbo runs. */
export const CHECKS = ["format", "lint", "types", "layers", "dead", "test"];

/**
 * @typedef {object} Task
 * @property {string} summary  For --help.
 * @property {(args: readonly string[]) => string[]} command  Arguments for the project's Node.
 */

/** @type {Readonly<Record<string, Task>>} */
export const TASKS = {
  bench: {
    summary: "what the product costs, each figure beside its ceiling",
    command: (args) => ["test/bench/main.ts", ...args],
  },
  demo: {
    summary: "the story of one refund, on real processes",
    command: (args) => ["apps/dev/src/demo.ts", ...args],
  },
  start: {
    summary: "the whole fleet on this machine, until Ctrl-C",
    command: (args) => ["apps/dev/src/start.ts", ...args],
  },
  test: {
    summary: "all tests; with arguments, what vitest makes of them",
    // Coverage of core is a threshold, so it means something only for a whole run.
    command: (args) => ["node_modules/vitest/vitest.mjs", "run", ...(args.length === 0 ? ["--coverage"] : args)],
  },
  "test:acceptance": {
    summary: "the retail tasks while workers are being killed",
    command: (args) => ["test/acceptance/tau-retail/main.ts", ...args],
  },
  verify: {
    summary: `all checks, as CI runs them, or the named ones: ${CHECKS.join(", ")}`,
    command: (args) => ["infra/checks/verify.ts", ...args],
  },
};

/** @returns {string} */
export function usage() {
  const width = Math.max(...Object.keys(TASKS).map((name) => name.length));
  const lines = Object.entries(TASKS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `usage: node infra/bootstrap/run.mjs <task> [arguments]\n\n${lines.join("\n")}\n\nInstalls what is missing first.\n`;
}

/**
 * @param {string} version  As in process.versions.node, "20.20.2".
 * @returns {boolean}
 */
export function isNodeNewEnough(version) {
  return Number(version.split(".")[0]) >= MINIMUM_NODE_MAJOR;
}

/**
 * The package for npx from the field `packageManager` of package.json.
 *
 * @param {unknown} packageManager  "pnpm@12.4.2", perhaps with "+sha512.…" behind it.
 * @returns {string}
 */
export function pinnedPnpm(packageManager) {
  const pinned = typeof packageManager === "string" ? /^pnpm@\d+\.\d+\.\d+/.exec(packageManager)?.[0] : undefined;
  if (pinned === undefined)
    throw new Error('package.json: "packageManager" must name an exact version, as in "pnpm@12.4.2"');
  return pinned;
}

/**
 * What is done with a signal that reaches us while the task runs. A Ctrl-C in a terminal reaches the task too, since it
 * is in our process group: passing it on would give it the signal twice.
 *
 * @param {NodeJS.Signals} signal
 * @param {boolean} inTerminal
 * @returns {"pass on" | "wait"}
 */
export function reactTo(signal, inTerminal) {
  return signal === "SIGINT" && inTerminal ? "wait" : "pass on";
}
