import type { AgentRef } from "@holdpoint/core";
import type { AgentWakeUp } from "@holdpoint/queue";
import type { CommitGroup, Store } from "@holdpoint/store";
import type { Clock } from "./clock.ts";
import type { Runnable } from "./define-agent.ts";
import type { Lease } from "./lease.ts";
import type { Log } from "./log.ts";
import type { OwnedRun } from "./owned-run.ts";
import type { ServiceBoard } from "./service-board.ts";
import type { Stragglers } from "./stragglers.ts";
import type { WholeOutputs } from "./whole-outputs.ts";

/** What every act on a run needs. */
export interface RunContext {
  readonly store: Store;
  readonly group: CommitGroup;
  readonly lease: Lease;
  readonly clock: Clock;
  readonly log: Log;
  readonly workerId: string;
  readonly agent: Runnable;
  /** What else this process runs, by name and version. */
  readonly findRunnable: (ref: AgentRef) => Runnable | null;
  readonly services: ServiceBoard;
  /** Publishes wake-ups after a commit; what the queue does with them is not the run's business. */
  readonly announce: (wakeUps: readonly AgentWakeUp[]) => Promise<void>;
  /** What tools bring home after they were given up; waited for when the process drains. */
  readonly stragglers: Stragglers;
  /** Aborted when the process stops taking up work: the current step ends, then the run is given back. */
  readonly draining: AbortSignal;
  /** Aborted when the drain time is over: reads and model requests end at once. */
  readonly drained: AbortSignal;
}

/** One act's surroundings. */
export interface Act {
  readonly context: RunContext;
  readonly run: OwnedRun;
  /** Its large outputs, as far as they were needed. */
  readonly outputs: WholeOutputs;
  /** Ends what may be ended: a read, a model request, a wait. */
  readonly stop: AbortSignal;
}
