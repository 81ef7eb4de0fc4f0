import { createTestDatabase, moveClock } from "@holdpoint/testkit";
import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { commitSteps, keepPartitions, newId, openStore, planPartitions, type Store } from "../src/index.ts";
import { migrate } from "../src/migrate.ts";
import { makePartitions } from "../src/partitions.ts";
import { aCommit, aReply, aRun, aWorker, claim } from "./a-run.ts";
import { aClaimedRun } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const DAY_MS = 86_400_000;
const HISTORIES = ["attempts", "calls", "steps", "transitions"] as const;

afterEach(() => moveClock(bench.url, 0));

/** A database of its own, since what is made there changes what others would find. */
async function aDatabase() {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url }));
  const sql = async (text: string, values: readonly unknown[] = []) => (await store.pool.query(text, [...values])).rows;
  return { url, store, sql, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** In which partitions a run's history lies, without the time in their names. */
async function placesOf(store: Store, runId: string): Promise<readonly string[]> {
  const { rows } = await store.pool.query<{ part: string }>(
    `select distinct tableoid::regclass::text as part from holdpoint.steps where run_id = $1
     union select distinct tableoid::regclass::text from holdpoint.transitions where run_id = $1 order by part`,
    [runId],
  );
  return rows.map(({ part }) => part.replace(/^holdpoint\./, "").replace(/(_until)?_\d{4}_\d{2}$/, ""));
}

const names = (list: readonly { readonly name: string }[]): readonly string[] => list.map(({ name }) => name);

async function aStep(store: Store, runId: string): Promise<void> {
  const claimed = await claim(store, runId, await aWorker(store));
  expect(await commitSteps(store, [aCommit(claimed, { steps: [aReply([])] })])).toMatchObject([{ result: "taken" }]);
}

describe("where rows go", () => {
  test("a new run's history lies in a partition of this time", async () => {
    const run = await aRun(bench.store);
    await aStep(bench.store, run.id);
    expect(await placesOf(bench.store, run.id)).toEqual(["steps", "transitions"]);
  });

  test("a run whose id is out of all ranges is stored and worked on", async () => {
    const run = await aRun(bench.store);
    // The id of a process whose clock is decades ahead.
    const far = `0fffffff${run.id.slice(8)}`;
    await bench.sql("update holdpoint.runs set id = $2, line = $2 where id = $1", [run.id, far]);
    await bench.sql("update holdpoint.transitions set run_id = $2 where run_id = $1", [run.id, far]);
    await bench.sql("update holdpoint.messages set run_id = $2 where run_id = $1", [run.id, far]);
    await aStep(bench.store, far);
    expect(await placesOf(bench.store, far)).toEqual(["steps_rest", "transitions_rest"]);
  });

  test("a run's load reads the one partition that the run is in", async () => {
    const claimed = await aClaimedRun(bench.store);
    const client = new pg.Client({ connectionString: bench.url });
    await client.connect();
    try {
      await client.query("set plan_cache_mode = force_generic_plan");
      await client.query(
        `prepare load (uuid) as select r.id, (select count(*) from holdpoint.steps s where s.run_id = r.id),
           (select count(*) from holdpoint.calls c where c.run_id = r.id),
           (select count(*) from holdpoint.attempts a where a.run_id = r.id and a.ended_at is null)
         from holdpoint.runs r where r.id = $1`,
      );
      const { rows } = await client.query(`explain (analyze, format json) execute load ('${claimed.run.id}')`);
      const read = nodesOf(rows[0]["QUERY PLAN"][0].Plan).flatMap((node) =>
        node["Actual Loops"] > 0 && node["Relation Name"] !== undefined ? [node["Relation Name"]] : [],
      );
      const parts = read.filter((name) => name !== "runs").map((name) => name.replace(/(_until)?_\d{4}_\d{2}$/, ""));
      expect(parts.toSorted()).toEqual(["attempts", "calls", "steps"]);
    } finally {
      await client.end();
    }
  });
});

interface PlanNode {
  readonly "Actual Loops": number;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly PlanNode[];
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

describe("making partitions", () => {
  test("after a migration nothing is to be done", async () => {
    // The one of the tests' server may be of the last month.
    await migrate({ url: bench.url });
    expect(await planPartitions(bench.store)).toEqual({ make: [], drop: [] });
  });

  test("they are made before their time, each once, however many make them", async () => {
    await using database = await aDatabase();
    await moveClock(database.url, 40 * DAY_MS);
    const planned = names((await planPartitions(database.store)).make);
    expect(planned.map((name) => name.replace(/(_until)?_\d{4}_\d{2}$/, ""))).toEqual(
      expect.arrayContaining([...HISTORIES]),
    );
    const kept = await Promise.all(Array.from({ length: 4 }, () => keepPartitions(database.store)));
    const last = await keepPartitions(database.store);
    expect(last.stopped).toBeNull();
    expect([...kept.flatMap(({ made }) => made), ...last.made].toSorted()).toEqual(planned.toSorted());
    expect(await planPartitions(database.store)).toEqual({ make: [], drop: [] });
  });

  test("one that is made has the indexes, checks and room on its pages that its history asks for", async () => {
    await using database = await aDatabase();
    await moveClock(database.url, 40 * DAY_MS);
    await keepPartitions(database.store);
    const shape = `
      select h.relname as history, count(distinct c.reloptions) as options, count(distinct (
          select jsonb_agg(regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING', '') order by 1)
          from (select x.indexrelid from pg_index x where x.indrelid = c.oid
            order by regexp_replace(pg_get_indexdef(x.indexrelid), '^.* USING', '')) i)) as indexes,
        count(distinct (select jsonb_agg(k.conname order by k.conname) from pg_constraint k
          where k.conrelid = c.oid and k.contype = 'c')) as checks
      from pg_class h join pg_inherits n on n.inhparent = h.oid join pg_class c on c.oid = n.inhrelid
      where h.relnamespace = 'holdpoint'::regnamespace and h.relkind = 'p' group by h.relname order by h.relname`;
    expect(await database.sql(shape)).toEqual(
      HISTORIES.map((history) => ({ history, options: "1", indexes: "1", checks: history === "attempts" ? "1" : "0" })),
    );
  });

  test("whoever uses a history keeps a partition from being made, and is not kept waiting for it", async () => {
    await using database = await aDatabase();
    const run = await aRun(database.store);
    await moveClock(database.url, 40 * DAY_MS);
    const reader = new pg.Client({ connectionString: database.url });
    await reader.connect();
    await reader.query("begin");
    await reader.query("select count(*) from holdpoint.attempts");
    const { made, stopped } = await keepPartitions(database.store);
    expect({ made, stopped: stopped?.message }).toEqual({ made: [], stopped: expect.stringMatching(/in use/) });
    await aStep(database.store, run.id);
    await reader.end();
    expect((await keepPartitions(database.store)).made.length).toBeGreaterThan(0);
  });

  test("rows that came before their partition stay in the default one, and the next is made", async () => {
    await using database = await aDatabase();
    const { lowerMs, upperMs } = await nextRange(database);
    const early = `${(lowerMs + DAY_MS)
      .toString(16)
      .padStart(12, "0")
      .replace(/^(.{8})/, "$1-")}${newId().slice(13)}`;
    await database.sql(
      `insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at)
       values ('00000000-0000-7000-8000-000000000000', $1, 1, 1, 'x', '{}', now())`,
      [early],
    );
    const { made, stopped } = await keepPartitions(database.store);
    expect(stopped).toBeNull();
    const month = (ms: number) => new Date(ms).toISOString().slice(0, 7).replace("-", "_");
    expect(made).not.toContain(`steps_${month(lowerMs)}`);
    expect(made).toContain(`calls_${month(lowerMs)}`);
    expect(await database.sql("select tableoid::regclass::text as part from holdpoint.steps")).toEqual([
      { part: "holdpoint.steps_rest" },
    ]);
    await moveClock(database.url, upperMs - Date.now() + DAY_MS);
    const later = await keepPartitions(database.store);
    expect([...made, ...later.made]).toContain(`steps_${month(upperMs)}`);
  });

  test("a large default partition is looked through only by whoever migrates", async () => {
    await using database = await aDatabase();
    const far = "0fffffff-0000-7000-8000-000000000000";
    // One row a page: 36 MB.
    await database.sql("alter table holdpoint.transitions_rest alter column reason set storage plain");
    await database.sql(
      `insert into holdpoint.transitions (tenant_id, run_id, seq, to_status, event, actor_kind, actor_id, epoch, reason, at)
       select $1, $1, n, 'queued', 'x', 'x', 'x', 1, repeat('x', 7000), now() from generate_series(1, 4500) as n`,
      [far],
    );
    await moveClock(database.url, 40 * DAY_MS);
    const { made, stopped } = await keepPartitions(database.store);
    expect(stopped?.message).toMatch(/default partition of transitions .* holdpoint migrate/);
    expect(made.some((name) => name.startsWith("transitions"))).toBe(false);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await makePartitions(client).finally(() => client.end());
    expect((await planPartitions(database.store)).make).toEqual([]);
  });

  test("a role that does not own the tables is told that, and changes nothing", async () => {
    await using database = await aDatabase();
    const role = `sweeper_${newId().replaceAll("-", "")}`;
    await database.sql(`create role ${role} login`);
    await database.sql(`grant usage on schema holdpoint to ${role}`);
    await database.sql(`grant all on all tables in schema holdpoint to ${role}`);
    const url = new URL(database.url);
    url.username = role;
    try {
      await moveClock(database.url, 40 * DAY_MS);
      await using store = openStore({ url: url.href });
      const { make } = await planPartitions(store);
      expect(make.length).toBeGreaterThan(0);
      const { made, stopped } = await keepPartitions(store);
      expect({ made, stopped: stopped?.message }).toEqual({
        made: [],
        stopped: expect.stringMatching(/owner of the tables/),
      });
      expect((await planPartitions(database.store)).make).toEqual(make);
    } finally {
      await database.sql(`drop owned by ${role}`);
      await database.sql(`drop role ${role}`);
    }
  });
});

/** The first range that is missing when the present one is over. */
async function nextRange(database: { readonly url: string; readonly store: Store }) {
  await moveClock(database.url, 40 * DAY_MS);
  const range = (await planPartitions(database.store)).make.find(({ history }) => history === "steps");
  if (range === undefined) throw new Error("there is a range to make");
  return range;
}

describe("dropping partitions", () => {
  /** A database in which the partitions of the first runs are of the past, empty, and given back. */
  async function anEmptiedDatabase() {
    const database = await aDatabase();
    await aClaimedRun(database.store);
    await moveClock(database.url, 70 * DAY_MS);
    await keepPartitions(database.store);
    await database.sql("truncate holdpoint.transitions, holdpoint.runs cascade");
    return database;
  }

  test("those of the past go when nothing is left of their time", async () => {
    await using database = await anEmptiedDatabase();
    const planned = names((await planPartitions(database.store)).drop);
    expect(planned.length).toBeGreaterThanOrEqual(HISTORIES.length);
    expect(planned.every((name) => !name.endsWith("_rest"))).toBe(true);
    expect(await keepPartitions(database.store)).toMatchObject({ dropped: planned, stopped: null });
    expect(await planPartitions(database.store)).toEqual({ make: [], drop: [] });
    // What comes late all the same goes to the default one.
    const run = await aRun(database.store);
    expect(await placesOf(database.store, run.id)).toEqual(["transitions_rest"]);
  });

  test("while a run of that time is left, it keeps its place in all of them", async () => {
    await using database = await anEmptiedDatabase();
    await aRun(database.store);
    await database.sql("truncate holdpoint.transitions");
    expect(names((await planPartitions(database.store)).drop)).not.toContain((await firstPart(database)).part);
  });

  test("one that has a row is never dropped, whatever was seen before", async () => {
    await using database = await anEmptiedDatabase();
    const { history, part } = await firstPart(database);
    const drop = () => database.sql("select holdpoint.drop_partition($1, $2) as done", [history, part]);
    await aRun(database.store);
    expect(await drop()).toEqual([{ done: false }]);
    expect(await firstPart(database)).toEqual({ history, part });
    expect(await database.sql("select holdpoint.drop_partition('steps', $1) as done", [part])).toEqual([
      { done: false },
    ]);
    expect(await database.sql("select holdpoint.drop_partition('steps', 'steps_rest') as done")).toEqual([
      { done: false },
    ]);
  });

  test("a row that is being written keeps the partition, although nobody sees it yet", async () => {
    await using database = await anEmptiedDatabase();
    const writer = new pg.Client({ connectionString: database.url });
    await writer.connect();
    await writer.query("begin");
    await writer.query(
      `insert into holdpoint.transitions (tenant_id, run_id, seq, to_status, event, actor_kind, actor_id, epoch, at)
       values ($1, $1, 1, 'queued', 'x', 'x', 'x', 1, now())`,
      [newId()],
    );
    const { history, part } = await firstPart(database);
    const dropping = database.sql("select holdpoint.drop_partition($1, $2) as done", [history, part]);
    await expect(dropping).rejects.toMatchObject({ code: "55P03" });
    await writer.query("commit");
    await writer.end();
    expect(await firstPart(database)).toEqual({ history, part });
  });

  /** The partition of the first runs' transitions. */
  async function firstPart({ sql }: Pick<Awaited<ReturnType<typeof aDatabase>>, "sql">) {
    const [row] = await sql(
      `select 'transitions' as history, c.relname as part from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = 'holdpoint.transitions'::regclass and c.relname like '%until%'`,
    );
    return row as { history: string; part: string };
  }
});
