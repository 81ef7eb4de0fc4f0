import type { Publisher } from "@holdpoint/queue";
import { type Run, type Store, showId, stopDescendants } from "@holdpoint/store";
import type { FastifyBaseLogger } from "fastify";

/** Does what a change of a run leads to. */
export interface WakeUps {
  /**
   * After the commit, beside the reply: tells the queue of a run that has become `queued`, and asks everything below a run
   * that is being stopped to stop as well. What fails here the sweeper does.
   */
  announce(run: Run): void;
  /** Ends when everything that was announced is done or has failed. */
  settled(): Promise<void>;
}

/** Opens it over the queue's publisher and the store. */
export function openWakeUps({
  publisher,
  store,
  log,
}: {
  readonly publisher: Publisher;
  readonly store: Store;
  readonly log: FastifyBaseLogger;
}): WakeUps {
  const open = new Set<Promise<void>>();

  async function publish({ id, agent, version }: Run): Promise<void> {
    const { failed, error } = await publisher.publish([{ agent, runId: id, version }]);
    if (failed === 0) return;
    const fields = { event: "wake_up.failed", runId: showId("run", id), error: error?.name ?? null };
    log.warn(fields, "wake-up not published; the sweeper repeats it");
  }

  async function cascade({ id }: Run): Promise<void> {
    const { errors } = await stopDescendants(store, id).catch((error: Error) => ({ errors: [error] }));
    const [first] = errors;
    if (first === undefined) return;
    const fields = { event: "cascade.failed", runId: showId("run", id), error: first.name };
    log.warn(fields, "not everything below was asked to stop; the sweeper does it");
  }

  const keep = (work: Promise<void>): void => {
    const kept = work.finally(() => open.delete(kept));
    open.add(kept);
  };
  return {
    announce(run) {
      const { status, liveChildren, cancelRequestedAt } = run.state;
      if (status === "queued" && !run.isTask) keep(publish(run));
      if (cancelRequestedAt !== null && liveChildren > 0) keep(cascade(run));
    },
    async settled() {
      await Promise.all(open);
    },
  };
}
