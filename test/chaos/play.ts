// One play: the reference run from its submission to its end, with faults planned for the workers that take it up.

import { failureKind, findViolations, loadRun, newId, type Store } from "../../packages/store/src/index.ts";
import type { FaultPoint, Sending } from "../../packages/testkit/src/fault-points.ts";
import { approve } from "./approve.ts";
import { passTime, superviseEnd, sweepOnce } from "./caretakers.ts";
import type { Crew, Ended, WorkerProcess } from "./crew.ts";
import { type Judgement, judge } from "./judge.ts";
import type { Order, PlannedFault, ProviderOffers } from "./messages.ts";
import type { Stage, StageBuilder } from "./stage.ts";

export interface Plan {
  /** The n-th is for the n-th worker; those after them have none. */
  readonly faults: readonly PlannedFault[];
  /** What the payment provider offers; keys and a look-up if left out. */
  readonly offers?: ProviderOffers;
  /** Who finds that a process has ended: its supervisor, or, gone with it, the sweeper at the end of the lease. */
  readonly foundBy?: "supervisor" | "sweeper";
  /**
   * When what a killed process was about to send arrives: never, behind its runs' recovery, behind the first look-up, or
   * behind the run's end.
   */
  readonly arrives?: "never" | "after_recovery" | "after_look_up" | "after_end";
}

export interface Played extends Judgement {
  /** The points that the last worker passed. */
  readonly passed: readonly string[];
  /** The faults that happened, in order. */
  readonly met: readonly FaultPoint[];
}

const ROUNDS_LIMIT = 40;

/** Plays one plan on a stage of its own. What goes wrong is told in `wrong` of the judgement. */
export async function play(crew: Crew, builder: StageBuilder, plan: Plan): Promise<Played> {
  await using stage = await builder.build();
  const actors = openActors(crew, stage, plan);
  const wrong: string[] = [];
  const note = (error: unknown): void => void wrong.push(String(error));
  await playToTheEnd(stage, actors).catch(note);
  await actors.leave().catch(note);
  const judged = await judge(stage, await findViolations(stage.store));
  const { met, passed } = actors;
  if (met.length < plan.faults.length) wrong.push(`${plan.faults.length - met.length} planned faults did not happen`);
  return { ...judged, wrong: [...wrong, ...judged.wrong], passed, met };
}

async function playToTheEnd(stage: Stage, actors: Actors): Promise<void> {
  const { store, runId } = stage;
  actors.wake([runId]);
  for (let round = 1; round <= ROUNDS_LIMIT; round += 1) {
    if (await actors.work()) continue;
    const run = (await loadRun(store, runId))?.run;
    if (run === undefined || run.state.endedAt !== null) return;
    if (run.state.owner !== null && run.state.owner === actors.workerId) {
      throw new Error(`an idle worker keeps the run, which is ${run.state.status}`);
    }
    if (run.state.status === "waiting_approval") {
      await approve(store, runId);
      actors.wake([runId]);
      continue;
    }
    actors.wake(await sweepOnce(store, round));
    if (actors.isAwake) continue;
    await actors.rest();
    await passTime(stage);
  }
  throw new Error(`the run has not ended after ${ROUNDS_LIMIT} rounds`);
}

interface Actors {
  readonly passed: readonly string[];
  readonly met: readonly FaultPoint[];
  /** The worker at hand. */
  readonly workerId: string | null;
  /** Whether a wake-up waits. */
  readonly isAwake: boolean;
  wake(runIds: readonly string[]): void;
  /** Has a worker take the next wake-up; false if there is none. */
  work(): Promise<boolean>;
  /** Time passes with nothing to do. */
  rest(): Promise<void>;
  /** The worker at hand ends, and what was still under way arrives. */
  leave(): Promise<void>;
}

/** The workers of a play, one after the other, and the queue before them. */
function openActors(crew: Crew, stage: Stage, plan: Plan): Actors {
  const { faults, offers = "key_and_look_up", foundBy = "supervisor", arrives = "never" } = plan;
  const { url: databaseUrl, sandboxUrl, store } = stage;
  const planned = [...faults];
  const met: FaultPoint[] = [];
  const queue: string[] = [];
  const underWay: Sending[] = [];
  let passed: readonly string[] = [];
  let worker: { readonly id: string; readonly process: WorkerProcess } | null = null;

  /** Gives an order to the worker at hand; if it ends with that, or cannot even start, its runs are given back. */
  const tell = async ({ id, process }: NonNullable<typeof worker>, order: Order): Promise<Ended> => {
    const ended = await process.order(order);
    if (process.fault !== null && !met.includes(process.fault)) met.push(process.fault);
    if (ended.said === "done") passed = ended.passed;
    const goesOn = ended.said === "done" ? order.do !== "close" : order.do === "take" && ended.said === "failed";
    if (goesOn) return ended;
    worker = null;
    if (ended.said === "died") underWay.push(...sendingOf(process.fault));
    else crew.dismiss(process);
    if (foundBy === "supervisor") queue.push(...(await superviseEnd(store, id)));
    return ended;
  };
  const arrive = async (): Promise<void> => {
    for (const sending of underWay.splice(0)) await deliver(store, sending);
  };
  /** A worker, started if there is none; null if it has failed at that. */
  const start = async (): Promise<typeof worker> => {
    if (worker !== null) return worker;
    if (arrives === "after_recovery") await arrive();
    const started = { id: newId(), process: await crew.hire() };
    worker = started;
    const fault = planned.shift() ?? null;
    await tell(started, { do: "open", workerId: started.id, databaseUrl, sandboxUrl, offers, fault });
    return worker;
  };
  return {
    get passed() {
      return passed;
    },
    met,
    get workerId() {
      return worker?.id ?? null;
    },
    get isAwake() {
      return queue.length > 0;
    },
    wake: (runIds) => void queue.push(...runIds),
    work: async () => {
      const [runId] = queue;
      if (runId === undefined) return false;
      const ready = await start();
      if (ready === null) return true;
      queue.shift();
      const taken = await tell(ready, { do: "take", runId });
      if (taken.said === "done" && taken.status === "queued") queue.push(runId);
      return true;
    },
    rest: async () => {
      if (arrives === "after_look_up") await arrive();
    },
    leave: async () => {
      if (worker !== null) await tell(worker, { do: "close" });
      if (arrives !== "never") await arrive();
    },
  };
}

function sendingOf(fault: FaultPoint | null): readonly Sending[] {
  return fault?.sending == null ? [] : [fault.sending];
}

/** What a dead process has sent arrives; the answer has no reader any more, whatever it is. */
async function deliver({ pool }: Store, sending: Sending): Promise<void> {
  if (sending.kind === "request") {
    const { url, ...request } = sending;
    await (await fetch(url, request)).text();
    return;
  }
  try {
    await pool.query(sending.text, [...sending.values]);
  } catch (error) {
    if (failureKind(error) === "connection") throw error;
  }
}
