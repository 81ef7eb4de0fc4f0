import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Answers, News, Order, Said, Usage, WorkerStart } from "./worker-channel.ts";

/** A contestant's worker, in a process of its own, so that what it uses is its own. */
export interface WorkerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Whether its process has ended. */
  hasEnded(): boolean;
  usage(): Promise<Usage>;
  /** What it uses when all that nobody needs any more has been thrown away. */
  leanUsage(): Promise<Usage>;
  /** Lets somebody hear what it tells unasked. */
  onNews(hear: (news: News) => void): void;
  /** Makes Postgres count what its connections have done; gives how many statements that took. */
  flushStatistics(): Promise<number>;
  startProfile(): Promise<void>;
  /** Writes the CPU profile since its start, in Chrome's format. */
  stopProfile(file: string): Promise<void>;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
}

const READY_WITHIN_MS = 30_000;
const ANSWER_WITHIN_MS = 30_000;

/** Starts a worker's program and waits until it takes wake-ups. */
export async function startWorker(program: URL, start: WorkerStart): Promise<WorkerProcess> {
  // Without the options of our own process, such as those of a test runner.
  const child = fork(program, [JSON.stringify(start)], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const answers = new Map<number, (message: Said) => void>();
  const hearers = new Set<(news: News) => void>();
  child.on("message", (message: Said) => {
    if (message.said === "reached") for (const hear of hearers) hear(message);
    else if (message.said !== "ready" && message.id !== null) answers.get(message.id)?.(message);
  });
  const ended = once(child, "exit");
  await readyOf(child);
  let orders = 0;

  async function ask<Do extends keyof Answers>(what: Do, file?: string): Promise<Answers[Do]> {
    orders += 1;
    const order: Order = { id: orders, do: what, ...(file === undefined ? {} : { file }) };
    const answer = new Promise<Said>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`A worker did not answer "${what}"`)), ANSWER_WITHIN_MS);
      answers.set(order.id, (message) => {
        clearTimeout(late);
        resolve(message);
      });
    });
    child.send(order);
    const message = await answer;
    answers.delete(order.id);
    if (message.said !== "answer") throw new Error(`A worker failed at "${what}": ${JSON.stringify(message)}`);
    return message.value as Answers[Do]; // the program answers an order with its own kind of value
  }

  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid ?? 0,
    hasEnded,
    usage: () => ask("usage"),
    leanUsage: () => ask("leanUsage"),
    onNews: (hear) => void hearers.add(hear),
    flushStatistics: () => ask("flushStatistics"),
    startProfile: async () => void (await ask("startProfile")),
    stopProfile: async (file) => void (await ask("stopProfile", file)),
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    async [Symbol.asyncDispose]() {
      if (hasEnded()) return;
      try {
        await ask("stop");
      } finally {
        child.kill("SIGKILL");
        await ended;
      }
    },
  };
}

function readyOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error("A worker's program did not get ready"));
    }, READY_WITHIN_MS);
    child.once("exit", (code, signal) =>
      reject(new Error(`A worker's program ended: ${signal ?? `exit code ${code}`}`)),
    );
    child.once("error", reject);
    child.on("message", function onMessage(message: Said) {
      if (message.said !== "ready") return;
      child.off("message", onMessage);
      clearTimeout(late);
      resolve();
    });
  });
}
