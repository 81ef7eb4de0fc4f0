import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { AgentRef, JsonObject } from "@holdpoint/core";
import type { AgentWakeUp, Consumer, Publisher, QueueConnection } from "@holdpoint/queue";
import { openConsumer, openPublisher } from "@holdpoint/queue";
import {
  findWakeable,
  newId,
  openCommitGroup,
  type RegisteredTool,
  type Run,
  registerAgent,
  registerTask,
  registerWorker,
  retireWorker,
  type Store,
  tellParents,
  transitionOne,
} from "@holdpoint/store";
import type { MeterProvider } from "@opentelemetry/api";
import { inputSchemaOf } from "./approval-request.ts";
import { openClaimGroup } from "./claim-group.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Runnable } from "./define-agent.ts";
import type { Task } from "./define-task.ts";
import { keepLease, type Lease } from "./lease.ts";
import type { Log } from "./log.ts";
import { openWorkerMetrics, type WorkerMetrics } from "./metrics.ts";
import { openServiceBoard } from "./service-board.ts";
import { openStragglers } from "./stragglers.ts";
import { progressMs, type Worked, workRun } from "./work-run.ts";

export interface WorkerOptions {
  readonly store: Store;
  readonly queue: QueueConnection;
  readonly agents: readonly Runnable[];
  /** Tasks that its agents start, to be made known: they are worked on elsewhere. */
  readonly tasks?: readonly Task[];
  /** How many runs this process works on at once. */
  readonly slots: number;
  /** How long the process may work without a renewal, in milliseconds. */
  readonly leaseMs: number;
  /** How often it renews, in milliseconds; at most a third of the lease. */
  readonly renewMs: number;
  readonly log: Log;
  readonly clock?: Clock;
  /** The id of this incarnation; a supervisor gives one, so that it can report the process's end. */
  readonly workerId?: string;
  /** Where its metrics go; by default to the process's own SDK of OpenTelemetry, if it has one. */
  readonly meterProvider?: MeterProvider;
}

/** A process that works on runs. */
export interface Worker {
  readonly id: string;
  /** Resolves when the lease is over: the process has to end and come back under a new id. */
  readonly lost: Promise<void>;
  /** Resolves when an operator asks it to drain, which is for whoever runs it to do. */
  readonly drainRequested: Promise<void>;
  /** Whether no other process is to be started in the place of this one. */
  staysDown(): boolean;
  /** Runs that are being worked on at this moment. */
  readonly active: number;
  /** Whether the lease is valid and the fetch loop turns. */
  isHealthy(): boolean;
  /**
   * Stops taking wake-ups, lets current steps finish within the drain time, gives every run back (that is no attempt),
   * retires the worker. Effects under way are waited for until their own deadlines, tools that were given up within the
   * drain time.
   */
  drain(drainMs: number): Promise<void>;
}

/** A fetch loop that has not turned for this long is no healthy one, in milliseconds. */
const FETCH_LIMIT_MS = 30_000;

/** Registers the agents and this worker, and starts taking wake-ups. */
export async function createWorker(options: WorkerOptions): Promise<Worker> {
  const { store, queue, agents, slots, log, clock = systemClock, workerId = newId() } = options;
  for (const agent of agents) {
    await registerAgent(store, {
      ...refOf(agent),
      kind: agent.kind,
      tools: describeTools(agent),
      inputSchema: inputOf(agent),
    });
  }
  for (const task of options.tasks ?? []) await makeKnown(store, task);
  const begunAtMs = clock.monotonicMs();
  const registration = { id: workerId, host: hostname(), pid: process.pid, agents: agents.map(refOf), slots };
  await registerWorker(store, { ...registration, leaseMs: options.leaseMs });
  const metrics = openWorkerMetrics({ provider: options.meterProvider, renewMs: options.renewMs });
  const lease = keepLease({ ...options, clock, workerId, begunAtMs, onRenewal: metrics.onRenewal });
  const publisher = openPublisher(queue, { onError: (error) => warn(log, "queue.publisher_failed", error) });
  const draining = new AbortController();
  const drained = new AbortController();
  const desk = openDesk({
    ...options,
    clock,
    workerId,
    lease,
    publisher,
    metrics,
    draining: draining.signal,
    drained: drained.signal,
  });
  metrics.watchSlots({ limit: slots, used: desk.active });
  const consumer = openConsumer(queue, {
    agents: agents.map(refOf),
    concurrency: slots,
    handler: desk.take,
    onError: (error) => warn(log, "queue.consumer_failed", error),
  });
  const lost = new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve(), { once: true }));
  return {
    id: workerId,
    lost,
    drainRequested: lease.drainRequested,
    staysDown: lease.staysDown,
    get active() {
      return desk.active();
    },
    isHealthy: () => lease.isValid() && !consumer.health().stopped && consumer.health().sinceFetchMs < FETCH_LIMIT_MS,
    drain: (drainMs) =>
      drain({ consumer, publisher, metrics, draining, drained, desk, lease, store, workerId, log, drainMs }),
  };
}

async function makeKnown(store: Store, task: Task): Promise<void> {
  const { name, version, terms } = task;
  if (await registerTask(store, task, terms)) return;
  throw new Error(`${name}@${version} is known as what workers do. Define the task under another name or version.`);
}

interface Desk {
  readonly take: (wakeUp: AgentWakeUp) => Promise<void>;
  readonly active: () => number;
  /** Resolves when no run is being worked on. */
  readonly idle: () => Promise<void>;
  /** Resolves when no tool that was given up is still under way. */
  readonly quiet: () => Promise<void>;
}

interface DeskOptions extends Omit<WorkerOptions, "queue"> {
  readonly clock: Clock;
  readonly workerId: string;
  readonly lease: Lease;
  readonly publisher: Publisher;
  readonly metrics: WorkerMetrics;
  readonly draining: AbortSignal;
  readonly drained: AbortSignal;
}

/** Where wake-ups become work: claim, work, and a wake-up for whoever goes on. A wake-up itself carries no authority. */
function openDesk(options: DeskOptions): Desk {
  const { store, agents, lease, metrics, draining } = options;
  const byName = new Map(agents.map((agent) => [keyOf(agent), agent]));
  const findRunnable = (ref: AgentRef): Runnable | null => byName.get(keyOf(ref)) ?? null;
  const group = openCommitGroup(store, { onBatch: metrics.onBatch });
  const longestMs = Math.max(...agents.map((agent) => progressMs({ agent })));
  const claims = openClaimGroup({ ...options, progressMs: longestMs, turn: group.turn, onClaim: metrics.onClaim });
  const services = openServiceBoard();
  const stragglers = openStragglers();
  const working = new Set<Promise<void>>();

  const take = async (wakeUp: AgentWakeUp): Promise<void> => {
    const agent = byName.get(keyOf(wakeUp.agent));
    if (agent === undefined || draining.aborted || !lease.isValid()) return;
    const claimed = await claims.claim(wakeUp);
    if (claimed === null) return;
    try {
      const announce = (wakeUps: readonly AgentWakeUp[]) => wakeOurs(options, wakeUps);
      const { run } = claimed.loaded;
      // It may go by another version than its wake-up says.
      const present = findRunnable(run.agent);
      const worked =
        present === null
          ? await giveBack(options, run)
          : await workRun(
              { ...options, group, agent: present, findRunnable, services, stragglers, announce },
              claimed.loaded,
            );
      if (worked.result === "given") await passOn(options, worked.run);
    } finally {
      claimed.end();
    }
  };
  return {
    take: (wakeUp) => {
      const work = take(wakeUp).finally(() => working.delete(work));
      working.add(work);
      return work;
    },
    active: () => working.size,
    idle: async () => void (await Promise.allSettled(working)),
    quiet: () => stragglers.idle(),
  };
}

/** Wakes workers for runs that were started; nobody for those that are worked on elsewhere. What fails here the sweeper does. */
async function wakeOurs({ store, publisher, log }: DeskOptions, wakeUps: readonly AgentWakeUp[]): Promise<void> {
  const runIds = wakeUps.map(({ runId }) => runId);
  const ours = await findWakeable(store, runIds).catch((error: unknown) => {
    warn(log, "run.not_announced", error);
    return [];
  });
  if (ours.length > 0) await publisher.publish(ours);
}

/** Gives a run back that this process cannot work on: it goes by another version since it was woken. */
async function giveBack({ store, workerId }: DeskOptions, run: Run): Promise<Worked> {
  const actor = { kind: "worker", id: workerId } as const;
  const events = [{ type: "Released", retryAt: null }] as const;
  const given = await transitionOne(store, { run, events, actor, reason: "another version" });
  return given.result === "accepted" ? { result: "given", run: given.run } : { result: "replaced" };
}

/** Tells whoever goes on after this run was given back: its next worker, or the one that has started it. */
async function passOn({ store, publisher, workerId, log }: DeskOptions, run: Run): Promise<void> {
  let ready = [run];
  if (run.parent !== null && run.state.endedAt !== null) {
    // What fails here the sweeper does.
    const told = await tellParents(store, [run.id], { kind: "worker", id: workerId }).catch((error: unknown) => {
      warn(log, "parent.not_told", error);
      return { moved: [] };
    });
    ready = [...told.moved];
  }
  const wakeUps = ready
    .filter(({ state }) => state.status === "queued")
    .map(({ id: runId, version, agent }) => ({ agent, runId, version }));
  if (wakeUps.length > 0) await publisher.publish(wakeUps);
}

async function drain(parts: {
  readonly consumer: Consumer;
  readonly publisher: Publisher;
  readonly metrics: WorkerMetrics;
  readonly draining: AbortController;
  readonly drained: AbortController;
  readonly desk: Desk;
  readonly lease: Lease;
  readonly store: Store;
  readonly workerId: string;
  readonly log: Log;
  readonly drainMs: number;
}): Promise<void> {
  const { consumer, publisher, metrics, draining, drained, desk, lease, store, workerId, log, drainMs } = parts;
  draining.abort(new Error("The worker is draining"));
  consumer.pause();
  const idle = desk.idle();
  const ended = idle.then(desk.quiet);
  const cancelled = new AbortController();
  await Promise.race([ended, sleep(drainMs, undefined, { signal: cancelled.signal }).catch(() => undefined)]);
  cancelled.abort();
  drained.abort(new Error("The worker's drain time is over"));
  await idle;
  metrics.close();
  lease.close();
  // Servers that are away keep nobody from ending: without a word from it, the worker is gone when its lease is over.
  await Promise.all([
    consumer.close().catch((error) => warn(log, "queue.consumer_failed", error)),
    closePublisher(publisher).catch((error) => warn(log, "queue.publisher_failed", error)),
    retireWorker(store, workerId).catch((error) => warn(log, "worker.not_retired", error)),
  ]);
}

async function closePublisher(publisher: Publisher): Promise<void> {
  await publisher[Symbol.asyncDispose]();
}

function refOf({ name, version }: Runnable): { name: string; version: string } {
  return { name, version };
}

function keyOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return `${name}@${version}`;
}

/** What the runs of a workflow are given, as JSON schema; null where JSON schema can't say it: the worker checks it. */
function inputOf(agent: Runnable): JsonObject | null {
  if (agent.kind !== "workflow") return null;
  try {
    return inputSchemaOf(agent.workflow.input);
  } catch {
    return null; // zod's word for a type that JSON schema does not have
  }
}

function describeTools(agent: Runnable): readonly RegisteredTool[] {
  return [...agent.tools.values()].map(({ name, description, effect, input, rules, presentation }) => ({
    name,
    description,
    effect: effect.kind,
    inputSchema: inputSchemaOf(input),
    rules,
    presentation,
  }));
}

function warn(log: Log, event: string, error: unknown): void {
  const { name, message } = error instanceof Error ? error : { name: "unknown", message: "" };
  log.warn({ event, error: name, message }, event.replace(".", " ").replace("_", " "));
}
