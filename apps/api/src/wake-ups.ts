import type { Publisher } from "@holdpoint/queue";
import { type Run, showId } from "@holdpoint/store";
import type { FastifyBaseLogger } from "fastify";

/** Tells the queue of runs that have become `queued`. */
export interface WakeUps {
  /** Publishes after the commit, beside the reply: what the queue does is not the caller's business. */
  announce(run: Run): void;
  /** Ends when everything that was announced is published or has failed. */
  settled(): Promise<void>;
}

export function openWakeUps(publisher: Publisher, log: FastifyBaseLogger): WakeUps {
  const open = new Set<Promise<void>>();

  async function publish({ id, agent, version }: Run): Promise<void> {
    const { failed, error } = await publisher.publish([{ agent, runId: id, version }]);
    if (failed === 0) return;
    const fields = { event: "wake_up.failed", runId: showId("run", id), error: error?.name ?? null };
    log.warn(fields, "wake-up not published; the sweeper repeats it");
  }

  return {
    announce(run) {
      if (run.state.status !== "queued") return;
      const publishing = publish(run).finally(() => open.delete(publishing));
      open.add(publishing);
    },
    async settled() {
      await Promise.all(open);
    },
  };
}
