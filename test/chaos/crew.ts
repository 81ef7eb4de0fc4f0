// Working processes, started ahead of time: each has loaded its modules when it is needed.

import { type ChildProcess, fork } from "node:child_process";
import type { FaultPoint } from "../../packages/testkit/src/fault-points.ts";
import { buildProgram } from "./build-program.ts";
import type { Answer, Order, Said } from "./messages.ts";

/** How long a process may take for one order, in milliseconds. */
const ORDER_MS = 240_000;

/** How an order ended: by its answer, or with the process. */
export type Ended = Answer | { readonly said: "died"; readonly signal: string | null };

/** One working process. */
export interface WorkerProcess {
  /** Has it do something; one order at a time. */
  order(order: Order): Promise<Ended>;
  /** The fault that has happened to it since it was opened. */
  readonly fault: FaultPoint | null;
}

/** Processes that are ready to work. */
export interface Crew extends AsyncDisposable {
  hire(): Promise<WorkerProcess>;
  /** Gives back a process that lives and was closed; of one that has died, another takes the place by itself. */
  dismiss(worker: WorkerProcess): void;
}

/** Starts `size` processes and keeps as many. */
export async function openCrew(size: number): Promise<Crew> {
  const program = await buildProgram();
  const children = new Set<ChildProcess>();
  const idle: WorkerProcess[] = [];
  const waiting: PromiseWithResolvers<WorkerProcess>[] = [];
  let closed = false;

  const offer = (worker: WorkerProcess): void => {
    const next = waiting.shift();
    if (next === undefined) idle.push(worker);
    else next.resolve(worker);
  };
  const start = (): void => {
    const child = fork(program.path, { execArgv: [] });
    children.add(child);
    let isReady = false;
    const worker = watch(child, () => {
      isReady = true;
      offer(worker);
    });
    child.once("exit", (code, signal) => {
      children.delete(child);
      if (closed) return;
      // Another would fail in the same way: who waits is told.
      if (isReady) start();
      else waiting.shift()?.reject(new Error(`a working process could not start (${code ?? signal})`));
    });
  };
  for (let n = 0; n < size; n += 1) start();
  return {
    hire: () => {
      const worker = idle.shift();
      if (worker !== undefined) return Promise.resolve(worker);
      const next = Promise.withResolvers<WorkerProcess>();
      waiting.push(next);
      return next.promise;
    },
    dismiss: offer,
    [Symbol.asyncDispose]: async () => {
      closed = true;
      const ends = [...children].map((child) => new Promise((resolve) => child.once("exit", resolve)));
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(ends);
      await program[Symbol.asyncDispose]();
    },
  };
}

function watch(child: ChildProcess, onReady: () => void): WorkerProcess {
  let fault: FaultPoint | null = null;
  let answer: ((ended: Ended) => void) | null = null;
  let died: Ended | null = null;
  const end = (ended: Ended): void => {
    answer?.(ended);
    answer = null;
  };
  child.on("message", (message: Said) => {
    if (message.said === "ready") onReady();
    else if (message.said === "fault") fault = message.point;
    else end(message);
  });
  child.once("exit", (_code, signal) => {
    died = { said: "died", signal };
    end(died);
  });
  return {
    get fault() {
      return fault;
    },
    order: (order) => {
      if (order.do === "open") fault = null;
      return new Promise((resolve, reject) => {
        if (died !== null) return resolve(died);
        const late = setTimeout(() => reject(new Error(`no answer to "${order.do}" within ${ORDER_MS} ms`)), ORDER_MS);
        answer = (ended) => {
          clearTimeout(late);
          resolve(ended);
        };
        child.send(order);
      });
    },
  };
}
