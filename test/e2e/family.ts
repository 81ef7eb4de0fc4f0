import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { type Client, createClient } from "../../packages/client/src/index.ts";
import { registerAgent, type Store } from "../../packages/store/src/index.ts";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { NOBODY } from "./family-agents.ts";
import { openFleet, type Program, startProgram } from "./processes.ts";

const FAMILY = resolve(import.meta.dirname, "family-agents.ts");
const CLI = resolve(import.meta.dirname, "../../apps/cli/src/main.ts");
const TOKENS = "alice-token=alice:requester;olga-token=olga:operator;mona-token=mona:manager";
const START_MS = 60_000;
/** Longer leases than single runs need: hundreds of runs at once may keep a process busy for seconds. */
const PATIENT = { HOLDPOINT_LEASE_MS: "8000", HOLDPOINT_RENEW_MS: "1500", HOLDPOINT_GRACE_MS: "1000" };

/** What a command printed, and its exit code. */
export interface Ran {
  readonly exitCode: number;
  readonly out: string;
}

/** A fleet of real processes whose agents start each other's runs, and an api process before it. */
export interface Family extends AsyncDisposable {
  readonly store: Store;
  readonly outside: Awaited<ReturnType<typeof openFleet>>["outside"];
  readonly api: Program;
  as(user: "alice" | "olga" | "mona"): Client;
  worker(options: { readonly processes: number; readonly slots: number; readonly busy?: true }): Promise<Program>;
  sweeper(): Promise<Program>;
  /** Working processes that have not been declared gone. */
  workers(): Promise<readonly { readonly id: string; readonly pid: number }[]>;
  /** Runs `holdpoint` as olga, who is on call. */
  holdpoint(...argv: readonly string[]): Promise<Ran>;
}

export async function openFamily(): Promise<Family> {
  const stack = new AsyncDisposableStack();
  const fleet = stack.use(await openFleet());
  const { store, outside, workers } = fleet;
  const programs: Program[] = [];
  stack.defer(() => end(programs));
  await registerAgent(store, { ...NOBODY, tools: [] });

  const start = async (
    app: "worker" | "sweeper" | "api",
    given: { args?: readonly string[]; env?: Record<string, string>; sign: string },
  ) => {
    const program = startProgram(app, given.args ?? [], { ...fleet.env, ...PATIENT, ...given.env });
    programs.push(program);
    const isUp = () => {
      if (program.process.exitCode !== null) throw new Error(`${app} ended: ${program.output()}`);
      return program.output().includes(given.sign);
    };
    await waitFor(isUp, { deadlineMs: START_MS, what: `${app} to start` });
    return program;
  };
  const env = { HOLDPOINT_API_TOKENS: TOKENS, HOLDPOINT_API_PORT: "0" };
  const api = await start("api", { env, sign: "api.listening" });
  const baseUrl = `http://127.0.0.1:${/"event":"api.listening","port":(\d+)/.exec(api.output())?.[1]}`;
  return {
    store,
    outside,
    api,
    workers,
    as: (user) => createClient({ baseUrl, token: `${user}-token` }),
    worker: ({ processes, slots, busy }) => {
      const args = ["--agents", FAMILY, "--processes", String(processes), "--slots", String(slots)];
      return start("worker", { args, sign: "worker started", env: busy === true ? { FAMILY_BUSY: "1" } : {} });
    },
    sweeper: () => start("sweeper", { sign: "sweeper started" }),
    holdpoint: (...argv) => run(argv, { HOLDPOINT_API_URL: baseUrl, HOLDPOINT_TOKEN: "olga-token", COLUMNS: "160" }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function run(argv: readonly string[], env: Record<string, string>): Promise<Ran> {
  const { PATH = "" } = process.env;
  return new Promise((done) => {
    execFile(process.execPath, [CLI, ...argv], { env: { PATH, ...env }, timeout: START_MS }, (error, out, err) => {
      done({ exitCode: typeof error?.code === "number" ? error.code : error === null ? 0 : -1, out: out + err });
    });
  });
}

async function end(programs: readonly Program[]): Promise<void> {
  for (const { process: child } of programs)
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
  await Promise.all(programs.map(({ ended }) => ended));
}
