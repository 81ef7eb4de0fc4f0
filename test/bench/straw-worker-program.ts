// The straw man's worker: a bare BullMQ worker that moves runs on, step by step.

import { randomUUID } from "node:crypto";
import { openBareWorker } from "./bullmq-server.ts";
import { type Mover, openMover, openMoverPool } from "./straw-moves.ts";
import { stepsOf } from "./work.ts";
import { serve } from "./worker-channel.ts";

const RESULT = '{"ok":true}';

await serve(async ({ url, queue, slots, work }) => {
  const pool = openMoverPool(url);
  const move = openMover(pool, randomUUID());
  const steps = stepsOf(work);
  const worker = await openBareWorker(queue, { concurrency: slots, work: ({ id }) => workOn(move, id, steps) });
  return {
    pools: [pool],
    async stop() {
      await worker.close();
      await pool.end();
    },
  };
});

/** Claims a run, stores its steps one after the other, each durable before the next, and ends it. */
async function workOn(move: Mover, id: string, steps: number): Promise<void> {
  let run = await move({ id, version: null, event: "Claimed", status: "running", step: null });
  if (run === null) return;
  while (run.step_seq < steps) {
    const step = { seq: run.step_seq + 1, result: RESULT };
    run = await move({ id, version: run.version, event: "Stepped", status: null, step });
    if (run === null) throw new Error("The run is not ours any more");
  }
  await move({ id, version: run.version, event: "Ended", status: "completed", step: null });
}
