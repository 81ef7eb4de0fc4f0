import type { AgentRef } from "@holdpoint/core";
import type { DueWakeUp } from "@holdpoint/store";
import type { Plan, SweepContext, Swept } from "./sweep.ts";

/** A run that is queued for longer than this may have no wake-up any more, in milliseconds. */
export const UNCLAIMED_MS = 2_000;

/** A queue longer than this is not added to: its runs wait for workers, not for wake-ups. */
const LONG_QUEUE = 1_000;
/** Queues that are asked at once: while the server is away, each answer takes as long as the publisher waits. */
const QUEUES_AT_ONCE = 16;

/** The wake-ups that are due for one agent, and how many wait in its queue; null: the queue can't say. */
interface Group {
  readonly agent: AgentRef;
  readonly wakeUps: readonly DueWakeUp[];
  readonly waiting: number | null;
}

/** Publishes wake-ups anew under ids of this pass, the oldest first, only where the queue is short. */
export async function repair(context: SweepContext, due: readonly DueWakeUp[]): Promise<Swept> {
  const groups = await askQueues(context, due);
  const published = await Promise.all(groups.map((group) => publish(context, group)));
  return { found: due.length, moved: published.reduce((sum, each) => sum + each, 0), errors: [] };
}

/**
 * The same as a plan: wake-ups are missing only where fewer wait in an agent's queue than its runs need. Where as many
 * wait, the runs wait for workers, and publishing again would change nothing.
 */
export async function planRepair(context: SweepContext, name: string, due: readonly DueWakeUp[]): Promise<Plan> {
  const groups = await askQueues(context, due);
  const short = groups.filter(({ waiting, wakeUps }) => waiting !== null && waiting < wakeUps.length);
  return {
    actions: short.flatMap(({ wakeUps }) =>
      wakeUps.map(({ runId, agent }) => ({
        kind: name,
        runId,
        subject: { kind: "agent", id: nameOf(agent) } as const,
      })),
    ),
    unreadable: groups.filter(({ waiting }) => waiting === null).map(({ agent }) => `queue of ${nameOf(agent)}`),
    carryOut: async () => {
      const published = await Promise.all(short.map((group) => publish(context, group)));
      return { found: due.length, moved: published.reduce((sum, each) => sum + each, 0), errors: [] };
    },
  };
}

async function askQueues({ publisher }: SweepContext, due: readonly DueWakeUp[]): Promise<readonly Group[]> {
  const open = byAgent(due);
  const groups: Group[] = [];
  const work = async (): Promise<void> => {
    for (let next = open.shift(); next !== undefined; next = open.shift()) {
      const waiting = await publisher.waiting(next.agent);
      groups.push({ ...next, waiting });
    }
  };
  await Promise.all(Array.from({ length: QUEUES_AT_ONCE }, work));
  return groups;
}

async function publish({ publisher, number }: SweepContext, { wakeUps, waiting }: Group): Promise<number> {
  if (waiting === null || waiting >= LONG_QUEUE) return 0;
  const { published } = await publisher.publish(wakeUps.slice(0, LONG_QUEUE - waiting), { sweep: number });
  return published;
}

function byAgent(due: readonly DueWakeUp[]): Omit<Group, "waiting">[] {
  const groups = new Map<string, { agent: AgentRef; wakeUps: DueWakeUp[] }>();
  for (const wakeUp of due) {
    const key = nameOf(wakeUp.agent);
    const group = groups.get(key) ?? { agent: wakeUp.agent, wakeUps: [] };
    group.wakeUps.push(wakeUp);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function nameOf({ name, version }: AgentRef): string {
  return `${name}@${version}`;
}
