import type { Publisher } from "@holdpoint/queue";
import { type Move, type Run, type ScheduleSeen, type Store, sortResults, transition } from "@holdpoint/store";
import { everything, goRound, type Look } from "./rounds.ts";

/** What a sweep works with. */
export interface SweepContext {
  readonly store: Store;
  readonly publisher: Publisher;
  /** In the history: the sweeper's name. */
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
  /** Workers that are waited for although their time is over, by the rule that says so. */
  readonly heldBack?: { readonly own_gap: number; readonly blast_radius: number };
  /** How many of each kind, where a sweep deals with several. */
  readonly counts?: Readonly<Record<string, number>>;
}

/** One bounded pass over one kind of obligation. */
export interface Sweep {
  readonly name: string;
  run(context: SweepContext): Promise<Swept>;
}

/** One thing that a sweep would do now. */
export interface Action {
  /** The sweep that does it. */
  readonly kind: string;
  readonly runId: string | null;
  /** What else it is about; null: the run says it all. */
  readonly subject: Subject | null;
}

/** Something beside a run: by its id, an artifact by its content, an agent as name@version, a schedule by its name. */
export interface Subject {
  readonly kind: "agent" | "approval" | "artifact" | "memory" | "schedule" | "session" | "slot" | "tombstone";
  readonly id: string;
}

/** What a sweep has found, before anything is changed. */
export interface Plan {
  readonly actions: readonly Action[];
  /** What could not be read, so that nobody knows whether something is to be done there. */
  readonly unreadable: readonly string[];
  /** Does it. Each action is judged anew by the statement that does it: what has changed since is left alone. */
  carryOut(): Promise<Swept>;
}

/** A sweep whose pass can be seen before it is made. */
export interface PlannedSweep extends Sweep {
  plan(context: SweepContext): Promise<Plan>;
}

export const NOTHING: Swept = { found: 0, moved: 0, errors: [] };

/** A sweep whose pass is its plan, carried out. */
export function plannedSweep(name: string, plan: (context: SweepContext) => Promise<Plan>): PlannedSweep {
  return { name, plan, run: async (context) => (await plan(context)).carryOut() };
}

/**
 * A sweep for faults of which no row tells by itself: its plan looks at everything, each of its passes at a part, so that a
 * pass costs the same however much is stored.
 */
export function roundSweep(name: string, plan: (context: SweepContext, look: Look) => Promise<Plan>): PlannedSweep {
  return {
    name,
    plan: (context) => plan(context, everything),
    run: (context) => goRound({ ...context, name }, async (look) => (await plan(context, look)).carryOut()),
  };
}

/** A move, but for its actor: that is the sweeper unless it says something else. */
export type Moving = Omit<Move, "actor"> & Partial<Pick<Move, "actor">>;

interface MovingSweep<Context extends SweepContext, Candidate extends { readonly run: Run }> {
  readonly find: (context: Context) => Promise<readonly Candidate[]>;
  readonly move: (candidate: Candidate) => Moving;
}

/** A sweep that moves runs: find candidates, let core reduce, one set-based transition, then the wake-ups. */
export function movingSweep<Candidate extends { readonly run: Run }>(
  name: string,
  { find, move }: MovingSweep<SweepContext, Candidate>,
): PlannedSweep {
  return plannedSweep(name, async (context) => planMoves(name, { context, candidates: await find(context), move }));
}

function planMoves<Candidate extends { readonly run: Run }>(
  name: string,
  {
    context,
    candidates,
    move,
  }: {
    readonly context: SweepContext;
    readonly candidates: readonly Candidate[];
    readonly move: (candidate: Candidate) => Moving;
  },
): Plan {
  return {
    actions: candidates.map(({ run }) => ({ kind: name, runId: run.id, subject: null })),
    unreadable: [],
    carryOut: async () => {
      if (candidates.length === 0) return NOTHING;
      const actor = { kind: "sweeper", id: context.id } as const;
      const moves = candidates.map((candidate) => ({ actor, ...move(candidate) }));
      const { moved, errors } = sortResults(await transition(context.store, moves, { skipLocked: true }));
      await wake(context.publisher, moved);
      return { found: candidates.length, moved: moved.length, errors };
    },
  };
}

/**
 * A pass over schedules, one statement for each: a sweep that two sweepers make at once does each of them once.
 *
 * `act` gives the run that it has started, or whether it has changed anything.
 */
export function scheduleSweep(
  name: string,
  {
    find,
    act,
  }: {
    readonly find: (store: Store, limit: number) => Promise<readonly ScheduleSeen[]>;
    readonly act: (context: SweepContext, seen: ScheduleSeen) => Promise<Run | "moved" | null>;
  },
): PlannedSweep {
  return plannedSweep(name, async (context) => {
    const found = await find(context.store, context.limit);
    return {
      actions: found.map(({ schedule }) => ({
        kind: name,
        runId: null,
        subject: { kind: "schedule", id: schedule.name },
      })),
      unreadable: [],
      carryOut: () => actOnEach(context, found, act),
    };
  });
}

async function actOnEach(
  context: SweepContext,
  found: readonly ScheduleSeen[],
  act: (context: SweepContext, seen: ScheduleSeen) => Promise<Run | "moved" | null>,
): Promise<Swept> {
  const started: Run[] = [];
  const errors: Error[] = [];
  let moved = 0;
  for (const seen of found) {
    try {
      const done = await act(context, seen);
      if (done !== null) moved += 1;
      if (done !== null && done !== "moved") started.push(done);
    } catch (error) {
      // One schedule that cannot be read must not keep the others from starting.
      errors.push(error instanceof Error ? error : new Error("A schedule could not be fired", { cause: error }));
    }
  }
  await wake(context.publisher, started);
  return { found: found.length, moved, errors };
}

/** Queue a wake-up for each run that a worker of ours can go on with. Nothing is lost if this fails: the row is the outbox. */
export async function wake(publisher: Publisher, runs: readonly Run[]): Promise<void> {
  const ready = runs.filter(({ state, isTask }) => state.status === "queued" && !isTask);
  if (ready.length > 0) await publisher.publish(ready.map(({ id, version, agent }) => ({ agent, runId: id, version })));
}
