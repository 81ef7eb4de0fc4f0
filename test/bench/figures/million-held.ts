import { DEFAULT_TENANT, openStore, type Store } from "@holdpoint/store";
import { listApprovals, listRuns } from "@holdpoint/store/read";
import { writeHeldRuns } from "@holdpoint/testkit/held-runs";
import { MOVING, type SweepContext, TIDYING, WAKING, WATCHING } from "@holdpoint/upkeep";
import { percentile } from "../arithmetic.ts";
import type { Figure } from "../figure.ts";
import { BENCH_AGENT, product } from "../product.ts";
import { type Goal, goal, type Row, rowOf, type Sample } from "../row.ts";
import { type QueueKind, sized } from "../settings.ts";
import type { Arena, Stage } from "../stage.ts";
import { measureWorker, type WorkerLoad } from "../worker-memory.ts";

const PASSES = 60;
const WARM_UP_PASSES = 20;
const DUE = 1_000;
const LOOKS = 100;
const SLOTS = 100;
/** Nothing more, but for what varies in what stays resident after a collection. */
const SAME_MEMORY = 1.05;
const PAGE = { limit: 50, after: null };

/** What runs wait for does not matter to sweeps that find nothing due, nor to lists. */
export const millionHeld: Figure = {
  name: "million-held",
  measures:
    "A million runs wait for people, children, the other side and the clock, and nothing of them is due: what all sweeps of a pass cost, what a pass costs that a thousand are due in, what lists cost, and what a worker process needs of memory. The ceiling of its memory is the same process on an empty database; a busy slot is what one with 100 runs in work needs more than one with a single run.",
  async run(stage, say) {
    const held = sized(stage.settings, { full: 1_000_000, quick: 20_000 });
    const queue = stage.settings.queues[0] ?? "postgres";
    const judged = (wanted: Goal) => (stage.settings.quick ? {} : { goal: wanted });
    await using arena = await stage.openArena(product.schema, queue);
    await using store = openStore({ url: arena.url, applicationName: "bench", maxConnections: 1 });
    await writeHeldRuns(arena.admin, { count: held, tenantId: DEFAULT_TENANT, agent: BENCH_AGENT.name });
    say(`${held} held runs are written`);
    const idle = await repeated(stage.settings.rounds, () => passesWithoutDue(store, arena));
    const lists = await repeated(stage.settings.rounds, () => looksAtLists(store));
    const due = await repeated(stage.settings.rounds, () => passWithDue(store, arena));
    say("sweeps and lists done");
    const memories = await measureMemories(stage, { full: arena, queue });
    const sweeps = { queue: null, unit: "ms of the server", ...judged(goal("value", "at most", 5)) };
    const pass = { queue: null, unit: "ms", ...judged(goal("value", "at most", 500)) };
    const memory = { queue, unit: "MB", ...judged(goal("ratio", "at most", SAME_MEMORY)) };
    const rows: Row[] = [
      rowOf({ figure: "all sweeps, nothing due", ...sweeps }, idle),
      rowOf({ figure: `a pass with ${DUE} due`, ...pass }, due),
      rowOf({ figure: "a page of runs or requests, p99", queue: null, unit: "ms" }, lists),
      rowOf(
        { figure: "worker memory, with the held runs to without", ...memory },
        memories.map(({ held: value, none: ceiling }) => ({ value: value / 1e6, ceiling: ceiling / 1e6 })),
      ),
      rowOf(
        { figure: "worker memory, of a busy slot", queue, unit: "KB" },
        memories.map(({ slot }) => ({ value: slot / 1e3, ceiling: null })),
      ),
    ];
    return rows;
  },
};

/** What one round has found, in bytes. */
interface Memories {
  readonly none: number;
  readonly held: number;
  readonly slot: number;
}

/** The same process on an empty database and on that with the held runs; and busy ones, each on a database of its own. */
async function measureMemories(
  stage: Stage,
  { full, queue }: { readonly full: Arena; readonly queue: QueueKind },
): Promise<readonly Memories[]> {
  const onEmpty = async (options: WorkerLoad): Promise<number> => {
    await using empty = await stage.openArena(product.schema, queue);
    return await measureWorker(empty, options);
  };
  const memories: Memories[] = [];
  for (let round = 0; round < stage.settings.rounds; round += 1) {
    const none = await onEmpty({ slots: SLOTS, busy: 0 });
    const held = await measureWorker(full, { slots: SLOTS, busy: 0 });
    const one = await onEmpty({ slots: 1, busy: 1 });
    const all = await onEmpty({ slots: SLOTS, busy: SLOTS });
    memories.push({ none, held, slot: (all - one) / (SLOTS - 1) });
  }
  return memories;
}

async function repeated(rounds: number, measure: () => Promise<number>): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  for (let round = 0; round < rounds; round += 1) samples.push({ value: await measure(), ceiling: null });
  return samples;
}

/** The time of all statements of a pass, as the server has it: what a pass keeps it from. */
async function passesWithoutDue(store: Store, { admin }: Arena): Promise<number> {
  const context = contextOf(store);
  const pass = async () => {
    for (const sweep of [WATCHING, ...MOVING, ...WAKING, ...TIDYING]) await sweep.run(context);
  };
  for (let number = 0; number < WARM_UP_PASSES; number += 1) await pass();
  await admin.query("select pg_stat_statements_reset()");
  for (let number = 0; number < PASSES; number += 1) await pass();
  const { rows } = await admin.query<{ ms: number }>(
    `select sum(s.total_exec_time + s.total_plan_time)::float8 as ms from pg_stat_statements s
     join pg_database d on d.oid = s.dbid
     where d.datname = current_database() and s.query not like '%pg_stat_statements%'`,
  );
  return (rows[0]?.ms ?? Number.NaN) / PASSES;
}

async function passWithDue(store: Store, { admin }: Arena): Promise<number> {
  await admin.query(
    `update holdpoint.runs set wait_deadline = holdpoint.clock() where id = any(array(
       select id from holdpoint.runs where status = 'waiting_input' and wait_deadline > holdpoint.clock() limit ${DUE}))`,
  );
  const startedMs = performance.now();
  let moved = 0;
  for (const sweep of MOVING) moved += (await sweep.run(contextOf(store))).moved;
  if (moved < DUE) throw new Error(`A pass has moved ${moved} runs of ${DUE}`);
  return performance.now() - startedMs;
}

async function looksAtLists(store: Store): Promise<number> {
  const tookMs: number[] = [];
  const looks = [
    () => listRuns(store, { statuses: ["waiting_operator"] }, PAGE),
    () => listRuns(store, { statuses: ["lost", "cancelling"] }, PAGE),
    () => listRuns(store, { waitingForPrincipal: "alice" }, PAGE),
    () => listApprovals(store, { decidableBy: { user: "mona", roles: ["manager"] } }, PAGE),
  ];
  for (let number = 0; number < LOOKS; number += 1) {
    for (const look of looks) {
      const startedMs = performance.now();
      await look();
      tookMs.push(performance.now() - startedMs);
    }
  }
  return percentile(tookMs, 0.99);
}

/** Nobody takes the wake-ups: what a queue does with them is no matter of this figure. */
function contextOf(store: Store): SweepContext {
  const publisher: SweepContext["publisher"] = {
    publish: async (wakeUps) => ({ published: wakeUps.length, failed: 0, error: null }),
    waiting: async () => 0,
    check: async () => true,
    [Symbol.asyncDispose]: async () => undefined,
  };
  return { store, publisher, id: "bench", graceMs: 5_000, limit: DUE, number: 1 };
}
