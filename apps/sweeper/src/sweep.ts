import type { AgentRef } from "@holdpoint/core";
import type { Publisher } from "@holdpoint/queue";
import { type DueWakeUp, type Move, type Run, type Store, sortResults, transition } from "@holdpoint/store";

/** What a sweep works with. */
export interface SweepContext {
  readonly store: Store;
  readonly publisher: Publisher;
  /** The sweeper's name in the history. */
  readonly id: string;
  readonly graceMs: number;
  /** Most runs that one pass of one sweep looks at. */
  readonly limit: number;
  /** Grows from pass to pass; makes the ids of repaired wake-ups new. */
  readonly number: number;
}

/** What one pass of a sweep did. */
export interface Swept {
  readonly found: number;
  readonly moved: number;
  /** What kept single runs from moving; they are found again. */
  readonly errors: readonly Error[];
}

/** One bounded pass over one kind of obligation. */
export interface Sweep {
  readonly name: string;
  run(context: SweepContext): Promise<Swept>;
}

export const NOTHING: Swept = { found: 0, moved: 0, errors: [] };

/** A move, but for its actor: that is the sweeper unless it says something else. */
export type Moving = Omit<Move, "actor"> & Partial<Pick<Move, "actor">>;

/** A sweep that moves runs: find candidates, let core reduce, one set-based transition, then the wake-ups. */
export function movingSweep<Candidate>(
  name: string,
  {
    find,
    move,
  }: {
    readonly find: (context: SweepContext) => Promise<readonly Candidate[]>;
    readonly move: (candidate: Candidate) => Moving;
  },
): Sweep {
  return {
    name,
    run: async (context) => {
      const candidates = await find(context);
      if (candidates.length === 0) return NOTHING;
      const actor = { kind: "sweeper", id: context.id } as const;
      const moves = candidates.map((candidate) => ({ actor, ...move(candidate) }));
      const { moved, errors } = sortResults(await transition(context.store, moves, { skipLocked: true }));
      await wake(context.publisher, moved);
      return { found: candidates.length, moved: moved.length, errors };
    },
  };
}

/** Queue a wake-up for each run that a worker can go on with. Nothing is lost if this fails: the row is the outbox. */
export async function wake(publisher: Publisher, runs: readonly Run[]): Promise<void> {
  const ready = runs.filter(({ state }) => state.status === "queued");
  if (ready.length > 0) await publisher.publish(ready.map(({ id, version, agent }) => ({ agent, runId: id, version })));
}

/** A queue longer than this is not added to: its runs wait for workers, not for wake-ups. */
const LONG_QUEUE = 1_000;
/** Queues that are asked at once: while the server is away, each answer takes as long as the publisher waits. */
const QUEUES_AT_ONCE = 16;

/** Publishes wake-ups anew under ids of this pass, the oldest first, only where the queue is short. */
export async function repair(context: SweepContext, due: readonly DueWakeUp[]): Promise<Swept> {
  const groups = byAgent(due);
  let moved = 0;
  const work = async (): Promise<void> => {
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      const published = await repairQueue(context, group);
      moved += published;
    }
  };
  await Promise.all(Array.from({ length: QUEUES_AT_ONCE }, work));
  return { found: due.length, moved, errors: [] };
}

interface Group {
  readonly agent: AgentRef;
  readonly wakeUps: readonly DueWakeUp[];
}

async function repairQueue({ publisher, number }: SweepContext, { agent, wakeUps }: Group): Promise<number> {
  const waiting = await publisher.waiting(agent);
  if (waiting === null || waiting >= LONG_QUEUE) return 0;
  const { published } = await publisher.publish(wakeUps.slice(0, LONG_QUEUE - waiting), { sweep: number });
  return published;
}

function byAgent(due: readonly DueWakeUp[]): Group[] {
  const groups = new Map<string, { agent: AgentRef; wakeUps: DueWakeUp[] }>();
  for (const wakeUp of due) {
    const key = `${wakeUp.agent.name}@${wakeUp.agent.version}`;
    const group = groups.get(key) ?? { agent: wakeUp.agent, wakeUps: [] };
    group.wakeUps.push(wakeUp);
    groups.set(key, group);
  }
  return [...groups.values()];
}
