// What the benchmark and a worker's process say to each other: orders, each with one answer.

import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import type { QueueConnection } from "@holdpoint/queue";
import type pg from "pg";
import { flushStatistics } from "./statistics.ts";
import type { Work } from "./work.ts";

/** What a worker's program is started with. */
export interface WorkerStart {
  readonly url: string;
  readonly queue: QueueConnection;
  /** Runs that it works on at once. */
  readonly slots: number;
  readonly work: Work;
}

/** What a process has used so far. */
export interface Usage {
  readonly cpuSeconds: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
}

/** Answers by order: what each of them gives. */
export interface Answers {
  readonly usage: Usage;
  /** What it uses when all that nobody needs any more has been thrown away. */
  readonly leanUsage: Usage;
  /** How many statements the flush took. */
  readonly flushStatistics: number;
  readonly startProfile: null;
  readonly stopProfile: null;
  readonly stop: null;
}

export interface Order {
  readonly id: number;
  readonly do: keyof Answers;
  /** For `stopProfile`: where the profile goes. */
  readonly file?: string;
}

export type Said =
  | { readonly said: "ready" }
  | { readonly said: "answer"; readonly id: number; readonly value: Answers[keyof Answers] }
  | { readonly said: "failed"; readonly id: number | null; readonly error: string }
  | News;

/** What a worker tells without being asked: a run has come to a point, by the machine's monotonic clock. */
export interface News {
  readonly said: "reached";
  readonly point: Point;
  readonly atMs: number;
}

/** Its first step is durable; the step after its release is. */
export type Point = "started" | "continued";

/** A worker that works until it is stopped. */
export interface Working {
  /** The pools whose connections it works on. */
  readonly pools: readonly pg.Pool[];
  stop(): Promise<void>;
}

/** Runs a worker's program: starts it with what the benchmark gave it, and obeys until it is stopped or left alone. */
export async function serve(start: (options: WorkerStart) => Promise<Working>): Promise<void> {
  const working = await start(JSON.parse(process.argv[2] ?? "{}") as WorkerStart);
  const obey = openObedience(working);
  process.on("message", (order: Order) => {
    obey(order).then(
      (value) => tell({ said: "answer", id: order.id, value }),
      (error: unknown) => tell({ said: "failed", id: order.id, error: String(error) }),
    );
  });
  tell({ said: "ready" });
  await once(process, "disconnect");
  process.exit();
}

function openObedience(working: Working): (order: Order) => Promise<Answers[keyof Answers]> {
  const inspector = new Session();
  return async (order) => {
    switch (order.do) {
      case "usage":
        return usageNow();
      case "leanUsage":
        await collectGarbage(inspector);
        return usageNow();
      case "flushStatistics":
        return flushStatistics(working.pools);
      case "startProfile":
        inspector.connect();
        await inspector.post("Profiler.enable");
        await inspector.post("Profiler.start");
        return null;
      case "stopProfile": {
        const { profile } = await inspector.post("Profiler.stop");
        inspector.disconnect();
        if (order.file !== undefined) await writeFile(order.file, JSON.stringify(profile));
        return null;
      }
      case "stop":
        await working.stop();
        return null;
    }
  };
}

async function collectGarbage(inspector: Session): Promise<void> {
  inspector.connect();
  await inspector.post("HeapProfiler.collectGarbage");
  inspector.disconnect();
}

function usageNow(): Usage {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return { cpuSeconds: (user + system) / 1e6, rssBytes: rss, heapBytes: heapUsed };
}

/** The machine's monotonic clock, which is the same in all processes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Tells the benchmark that the run which it watches has come to a point. */
export function tellReached(point: Point): void {
  tell({ said: "reached", point, atMs: monotonicMs() });
}

function tell(message: Said): void {
  process.send?.(message);
}
