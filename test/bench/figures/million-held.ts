import { DEFAULT_TENANT, openStore, type Store } from "@holdpoint/store";
import { listApprovals, listRuns } from "@holdpoint/store/read";
import { writeHeldRuns } from "@holdpoint/testkit/held-runs";
import { MOVING, type SweepContext, TIDYING, WAKING, WATCHING } from "@holdpoint/upkeep";
import { percentile } from "../arithmetic.ts";
import type { Figure } from "../figure.ts";
import { BENCH_AGENT, product } from "../product.ts";
import { goal, type Row, rowOf, type Sample } from "../row.ts";
import { sized } from "../settings.ts";
import type { Arena } from "../stage.ts";

const PASSES = 60;
const WARM_UP_PASSES = 20;
const DUE = 1_000;
const LOOKS = 100;
const PAGE = { limit: 50, after: null };

/** What runs wait for does not matter to sweeps that find nothing due, nor to lists. */
export const millionHeld: Figure = {
  name: "million-held",
  measures:
    "A million runs wait for people, children, the other side and the clock, and nothing of them is due: what all sweeps of a pass cost, what a pass costs that a thousand are due in, and what lists cost.",
  async run(stage, say) {
    const held = sized(stage.settings, { full: 1_000_000, quick: 20_000 });
    const queue = stage.settings.queues[0] ?? "postgres";
    await using arena = await stage.openArena(product.schema, queue);
    await using store = openStore({ url: arena.url, applicationName: "bench", maxConnections: 1 });
    await writeHeldRuns(arena.admin, { count: held, tenantId: DEFAULT_TENANT, agent: BENCH_AGENT.name });
    say(`${held} held runs are written`);
    const idle = await repeated(stage.settings.rounds, () => passesWithoutDue(store, arena));
    const lists = await repeated(stage.settings.rounds, () => looksAtLists(store));
    const due = await repeated(stage.settings.rounds, () => passWithDue(store, arena));
    const rows: Row[] = [
      rowOf(
        { figure: "all sweeps, nothing due", queue: null, unit: "ms of the server", goal: goal("value", "at most", 5) },
        idle,
      ),
      rowOf({ figure: `a pass with ${DUE} due`, queue: null, unit: "ms", goal: goal("value", "at most", 500) }, due),
      rowOf({ figure: "a page of runs or requests, p99", queue: null, unit: "ms" }, lists),
    ];
    return rows;
  },
};

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
