import { setTimeout as sleep } from "node:timers/promises";
import { BUSY_WORK } from "./busy-work.ts";
import type { Contestant } from "./contestant.ts";
import { product } from "./product.ts";
import type { Arena } from "./stage.ts";
import { startWorker } from "./worker-process.ts";

const busyProduct: Contestant = { ...product, program: new URL("./busy-worker-program.ts", import.meta.url) };

const LIMIT_MS = 30_000;
const POLL_MS = 20;
/** How long it then has nothing to do. */
const IDLE_MS = 2_000;

/** A worker, and how many of its slots are busy. */
export interface WorkerLoad {
  readonly slots: number;
  readonly busy: number;
}

/**
 * Resident memory of a worker process, in bytes: it has done some hundred runs, then as many runs keep a slot as are asked
 * for, nothing else is to be done for two seconds, and garbage is collected.
 */
export async function measureWorker(arena: Arena, { slots, busy }: WorkerLoad): Promise<number> {
  await using client = await busyProduct.openClient(arena);
  await using worker = await startWorker(busyProduct.program, {
    url: arena.url,
    queue: arena.queue,
    slots,
    work: BUSY_WORK,
  });
  const warmUp = await client.submit(BUSY_WORK.warmUpCalls);
  await warmUp.announce();
  await untilEnded(arena, warmUp.ids);
  const kept = await client.submit(busy);
  await kept.announce();
  await untilWorkedOn(arena, kept.ids);
  await sleep(IDLE_MS);
  const { rssBytes } = await worker.leanUsage();
  return rssBytes;
}

const untilEnded = (arena: Arena, ids: readonly string[]) =>
  untilTrue(arena, "every run to end", {
    text: "select count(*) = cardinality($1::uuid[]) as is_so from holdpoint.runs where id = any($1) and ended_at is not null",
    ids,
  });

/** Each has stored the reply that asks for its call. */
const untilWorkedOn = (arena: Arena, ids: readonly string[]) =>
  untilTrue(arena, "every run to keep a slot", {
    text: "select count(*) = cardinality($1::uuid[]) as is_so from holdpoint.runs where id = any($1) and status = 'running' and step_seq = 1",
    ids,
  });

async function untilTrue(
  { admin }: Arena,
  what: string,
  { text, ids }: { readonly text: string; readonly ids: readonly string[] },
): Promise<void> {
  const deadlineMs = performance.now() + LIMIT_MS;
  for (;;) {
    const { rows } = await admin.query<{ is_so: boolean }>(text, [ids]);
    if (rows[0]?.is_so === true) return;
    if (performance.now() > deadlineMs) throw new Error(`Waited too long for ${what}`);
    await sleep(POLL_MS);
  }
}
