import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Publisher } from "@holdpoint/queue";
import type { Log } from "@holdpoint/runtime";
import { findOwnedBy, loseAndRecover, markExited, newId, type Store } from "@holdpoint/store";
import { STAY_DOWN } from "./exit-codes.ts";
import type { WorkerArguments } from "./options.ts";

export interface SupervisorOptions extends WorkerArguments {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly log: Log;
  /** Is given each process when it begins, with its place: 0 for the first of them, and the same for its successors. */
  readonly onFork?: ((place: number, child: ChildProcess) => void) | undefined;
}

/** Keeps a number of working processes alive. */
export interface Supervisor {
  /** Resolves when a process could not even start, before any has; later ones are started again and again. */
  readonly failed: Promise<string>;
  /** Resolves when no process is left, since an operator has told every one to stay down. */
  readonly allDown: Promise<void>;
  /** Lets all processes drain and waits for their end. */
  stop(): Promise<void>;
}

const CHILD = new URL("./child.ts", import.meta.url);
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A process that lived this long is started again at once when it ends. */
const STEADY_MS = 5_000;
/** A dead client's last statement may still commit until its time-out on the server. */
const LAST_STATEMENT_MS = 10_500;
const RUNS_LIMIT = 1_000;

/** Forks the working processes. Each gets a fresh id; at its end its runs are given back at once. */
export function supervise(options: SupervisorOptions): Supervisor {
  const { processes, log, onFork = () => undefined } = options;
  const stopping = new AbortController();
  const children = new Set<ChildProcess>();
  const failed = Promise.withResolvers<string>();
  // What has started once is configured right: a database that is away then must not end the fleet.
  let hasStarted = false;

  const hear = (workerId: string, message: unknown): void => {
    const said = readMessage(message);
    if (said?.event === "worker.started") hasStarted = true;
    if (said?.event !== "worker.failed") return;
    log.error({ event: "worker.failed", workerId, message: said.message }, "worker failed");
    if (!hasStarted) failed.resolve(said.message);
  };

  /** One working process, from its start to its end; gives its exit code, null if it had none. */
  const live = async (workerId: string, place: number): Promise<number | null> => {
    const child = startChild(options, workerId);
    onFork(place, child);
    children.add(child);
    child.on("message", (message) => hear(workerId, message));
    const end = await untilEnded(child, (error) => logNotStarted(log, workerId, error));
    children.delete(child);
    if (end === null) return null;
    log.warn({ event: "worker.exited", workerId, pid: child.pid, ...end }, "worker exited");
    await giveBackRuns(options, workerId);
    void giveBackLater(options, workerId, stopping.signal);
    return end.code;
  };

  const keepAlive = async (place: number): Promise<void> => {
    let pauseMs = 0;
    while (!stopping.signal.aborted) {
      const startedMs = performance.now();
      const workerId = newId();
      // The system may have no room for another process at this moment.
      const code = await live(workerId, place).catch((error) => {
        logNotStarted(log, workerId, error);
        return null;
      });
      if (code === STAY_DOWN) return;
      const steady = performance.now() - startedMs > STEADY_MS;
      pauseMs = steady ? 0 : Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, pauseMs * 2));
      if (!stopping.signal.aborted) await pause(pauseMs, stopping.signal);
    }
  };
  const loops = Array.from({ length: processes }, (_, place) => keepAlive(place));
  return {
    failed: failed.promise,
    allDown: Promise.all(loops).then(() => undefined),
    stop: async () => {
      stopping.abort();
      for (const child of children) child.kill("SIGTERM");
      await Promise.all(loops);
    },
  };
}

function startChild({ agents, slots }: SupervisorOptions, workerId: string): ChildProcess {
  return fork(CHILD, [workerId, agents, String(slots)], {
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

/** How the process ended; null if it has never been one. An error of a process that lives (a message to it) ends nothing. */
function untilEnded(
  child: ChildProcess,
  onError: (error: unknown) => void,
): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null } | null> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.on("error", (error) => {
      onError(error);
      if (child.pid === undefined) resolve(null);
    });
  });
}

function logNotStarted(log: Log, workerId: string, error: unknown): void {
  const { name, message } = error instanceof Error ? error : { name: "unknown", message: "" };
  log.error({ event: "worker.process_failed", workerId, error: name, message }, "worker process failed");
}

function readMessage(message: unknown): { readonly event: string; readonly message: string } | null {
  if (typeof message !== "object" || message === null || !("event" in message)) return null;
  return { event: String(message.event), message: "message" in message ? String(message.message) : "" };
}

/** The process is known to have ended: nobody has to wait for its lease. */
async function giveBackRuns({ store, publisher, log }: SupervisorOptions, workerId: string): Promise<void> {
  try {
    await markExited(store, workerId);
    const owned = await findOwnedBy(store, workerId, RUNS_LIMIT);
    if (owned.length === 0) return;
    const actor = { kind: "supervisor", id: `supervisor-${process.pid}` } as const;
    const losses = owned.map(({ run }) => ({ run, reason: "process_exited" as const }));
    const { moved, errors } = await loseAndRecover(store, losses, actor);
    const ready = moved.filter(({ state }) => state.status === "queued" || state.status === "outcome_unknown");
    await publisher.publish(ready.map(({ id, version, agent }) => ({ agent, runId: id, version })));
    log.info({ event: "runs.given_back", workerId, runs: moved.length }, "runs given back");
    if (errors[0] !== undefined) throw errors[0];
  } catch (error) {
    // The sweeper finds the same runs when the lease is over; this was only the fast way.
    log.error(
      { event: "runs.not_given_back", workerId, error: error instanceof Error ? error.name : "unknown" },
      "runs not given back",
    );
  }
}

async function giveBackLater(options: SupervisorOptions, workerId: string, stopping: AbortSignal): Promise<void> {
  await pause(LAST_STATEMENT_MS, stopping);
  if (!stopping.aborted) await giveBackRuns(options, workerId);
}

async function pause(pauseMs: number, stopping: AbortSignal): Promise<void> {
  // An abort only means that there is nothing to wait for any more.
  await sleep(pauseMs, undefined, { signal: stopping, ref: false }).catch(() => undefined);
}
