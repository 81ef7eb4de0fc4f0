import { type LogLine, type Program, sendSignal } from "./program.ts";

/** What stands for one machine: a supervisor with its working processes, started again whenever it ends. */
export interface Machine {
  /** The working processes that have said they are ready and whose end nobody has seen. */
  workerPids(): readonly number[];
  /** SIGKILL to one working process; false where it is none of this machine's or had ended by itself. */
  killWorker(pid: number): boolean;
  /** SIGKILL to the supervisor and all its processes at once: nobody is left who could report it. */
  killAll(): boolean;
  stop(): Promise<void>;
}

/** @param start  starts the supervisor; what it and its processes print is given to `onLine`. */
export function keepMachine(start: (onLine: (line: LogLine) => void) => Program): Machine {
  const workers = new Set<number>();
  let stopping = false;
  let program = boot();

  function boot(): Program {
    workers.clear();
    const started = start((line) => note(workers, line));
    void started.ended.then(() => {
      if (!stopping) program = boot();
    });
    return started;
  }

  return {
    workerPids: () => [...workers],
    killWorker: (pid) => workers.delete(pid) && sendSignal(pid, "SIGKILL"),
    killAll: () => {
      workers.clear();
      return program.killGroup();
    },
    stop: async () => {
      stopping = true;
      await program.stop();
    },
  };
}

function note(workers: Set<number>, { event, pid }: LogLine): void {
  if (typeof pid !== "number") return;
  if (event === "worker.started") workers.add(pid);
  if (event === "worker.exited") workers.delete(pid);
}
