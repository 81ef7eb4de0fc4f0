// The straw man's worker, whose runs wait for somebody after their third step.

import { randomUUID } from "node:crypto";
import { openBareWorker } from "./bullmq-server.ts";
import { HELD_WORK } from "./held-work.ts";
import { type Mover, openMover, openMoverPool } from "./straw-moves.ts";
import { serve, tellReached } from "./worker-channel.ts";

const RESULT = '{"ok":true}';

await serve(async ({ url, queue, slots }) => {
  const pool = openMoverPool(url);
  const move = openMover(pool, randomUUID());
  const worker = await openBareWorker(queue, { concurrency: slots, work: ({ id }) => workOn(move, id) });
  return {
    pools: [pool],
    async stop() {
      await worker.close();
      await pool.end();
    },
  };
});

/** Claims a run and stores its steps up to where it waits, or, released, up to its end. */
async function workOn(move: Mover, id: string): Promise<void> {
  const claimed = await move({ id, version: null, event: "Claimed", status: "running", step: null });
  if (claimed === null) return;
  const waits = claimed.step_seq < HELD_WORK.beforeHold;
  let run = claimed;
  for (let seq = run.step_seq + 1; seq <= (waits ? HELD_WORK.beforeHold : HELD_WORK.steps); seq += 1) {
    const moved = await move({
      id,
      version: run.version,
      event: "Stepped",
      status: null,
      step: { seq, result: RESULT },
    });
    if (moved === null) throw new Error("The run is not ours any more");
    run = moved;
    if (seq === 1) tellReached("started");
    if (seq === HELD_WORK.beforeHold + 1) tellReached("continued");
  }
  const status = waits ? "waiting" : "completed";
  await move({ id, version: run.version, event: waits ? "Held" : "Ended", status, step: null });
}
