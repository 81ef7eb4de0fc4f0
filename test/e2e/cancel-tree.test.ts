import { afterEach, beforeEach, expect, test } from "vitest";
import { findViolations } from "../../packages/store/src/index.ts";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { type Family, openFamily } from "./family.ts";
import { BOSS, type Doing } from "./family-agents.ts";
import type { Program } from "./processes.ts";

let family: Family;

beforeEach(async () => {
  family = await openFamily();
});
afterEach(() => family[Symbol.asyncDispose]());

const SEED = Number(process.env.TEST_SEED ?? "20261130");
const LEADS = 10;
/** With the boss and its leads, 200 runs. */
const HANDS = 189;
const KILLS = 8;
const BUILD_MS = 150_000;
const STOP_MS = 150_000;
const TEST_MS = 400_000;

/** What the hands are told to do, and the status that brings them to. A hand that sends is under way, or nobody knows. */
const REACHES: Readonly<Record<Exclude<Doing, "grant">, readonly string[]>> = {
  done: ["completed"],
  ask: ["waiting_input"],
  approve: ["waiting_approval"],
  timer: ["waiting_dependency"],
  operator: ["waiting_operator"],
  retry: ["retrying"],
  unknown: ["outcome_unknown"],
  look: ["running"],
  // Five that are given up close their service for the others.
  send: ["queued", "running", "outcome_unknown", "waiting_dependency"],
  wait: ["queued"],
};
const DOINGS = Object.keys(REACHES) as (keyof typeof REACHES)[];

interface Row {
  readonly id: string;
  readonly goal: string;
  readonly status: string;
  readonly asked: boolean;
  readonly ended: boolean;
  readonly ended_before: boolean;
}

/** The whole tree; `ended_before`: it had ended when the root was asked to stop. */
async function tree(): Promise<readonly Row[]> {
  const { rows } = await family.store.pool.query<Row>(
    `select r.id, r.goal, r.status, r.cancel_requested_at is not null as asked, r.ended_at is not null as ended,
       coalesce(r.ended_at < coalesce(top.cancel_requested_at, 'infinity'), false) as ended_before
     from holdpoint.runs r join holdpoint.runs top on top.id = coalesce(r.ancestors[1], r.id)`,
  );
  return rows;
}

function inWords(rows: readonly Row[]): string {
  const counts = new Map<string, number>();
  for (const { goal, status, asked } of rows) {
    const key = `${goal.split(" ")[0]?.slice(0, 10)} ${status}${asked ? ", asked" : ""}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].map(([what, count]) => `${what}: ${count}`).join("; ");
}

/** Waits until the tree is so; says how it is where it never was. */
async function untilTree(
  what: string,
  is: (rows: readonly Row[]) => boolean,
  deadlineMs: number,
): Promise<readonly Row[]> {
  let last: readonly Row[] = [];
  const look = async () => {
    last = await tree();
    return is(last) ? last : null;
  };
  return waitFor(look, { deadlineMs, what }).catch((cause) => {
    throw new Error(`seed ${SEED}: ${inWords(last)}`, { cause });
  });
}

function isSettled(rows: readonly Row[]): boolean {
  const reached = rows.filter(({ goal, status }) => {
    const doing = DOINGS.find((each) => goal.startsWith(`${each} `) && !goal.includes(","));
    return doing !== undefined && REACHES[doing].includes(status);
  });
  const parents = rows.filter(({ goal, status }) => goal.includes(",") && status === "waiting_dependency");
  return reached.length === HANDS && parents.length === LEADS + 1;
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORKER = { processes: 2, slots: 8 } as const;
const BUSY_WORKER = { processes: 2, slots: 14, busy: true } as const;

/** Kills workers' processes, whole workers and sweepers, and starts others in their place, while the tree stops. */
async function killAtRandom(programs: { sweeper: Program; worker: Program; busy: Program }): Promise<void> {
  const random = chance(SEED);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = (await tree()).filter(({ ended }) => ended).length;
    const victim = Math.floor(random() * 4);
    if (victim === 0) {
      programs.sweeper.process.kill("SIGKILL");
      programs.sweeper = await family.sweeper();
    } else if (victim === 1) {
      const name = random() < 0.5 ? "worker" : "busy";
      programs[name].process.kill("SIGKILL");
      programs[name] = await family.worker(name === "worker" ? WORKER : BUSY_WORKER);
    } else {
      const hands = await family.workers();
      const hand = hands[Math.floor(random() * hands.length)];
      if (hand !== undefined) killIfThere(hand.pid);
    }
    // The next falls where something has happened meanwhile, or nothing could.
    const overMs = performance.now() + 1_000;
    const hasMoved = async () =>
      performance.now() > overMs || (await tree()).filter(({ ended }) => ended).length > before;
    await waitFor(hasMoved, { deadlineMs: 10_000, what: "a run to end, or a second to pass" });
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    return; // it has ended by itself since its row was read
  }
}

test("a three-level tree of 200 runs in all statuses is cancelled while workers and sweepers are killed: all have stopped, and nothing started after the request", {
  timeout: TEST_MS,
}, async () => {
  const goals = Array.from({ length: HANDS }, (_, n) => `${DOINGS[n % DOINGS.length]} ${n}`);
  for (const goal of goals) if (/^(look|send) /.test(goal)) family.outside.hold(goal);
  const [worker, busy, sweeper] = await Promise.all([
    family.worker(WORKER),
    family.worker(BUSY_WORKER),
    family.sweeper(),
  ]);
  const alice = family.as("alice");
  const { id: sessionId } = await alice.createSession();
  const share = Math.ceil(HANDS / LEADS);
  const parts = Array.from({ length: LEADS }, (_, lead) => goals.slice(lead * share, (lead + 1) * share).join(","));
  const root = await alice.submitRun({ sessionId, agent: BOSS, goal: parts.join(";") });
  const built = await untilTree("the tree to be in all statuses", isSettled, BUILD_MS);
  expect(built).toHaveLength(1 + LEADS + HANDS);

  // Five of those that ask are paused.
  const { items: asking } = await alice.listRuns({ status: ["waiting_input"], limit: 5 });
  for (const { id } of asking) await family.as("olga").pauseRun({ runId: id });
  const statuses = new Set((await tree()).map(({ status }) => status));
  for (const status of [...Object.values(REACHES).flatMap(([first]) => first ?? []), "paused"])
    expect(statuses).toContain(status);

  const cancelling = await alice.cancelRun({ runId: root.id, reason: "no more" });
  expect(cancelling.status).toBe("cancelling");
  expect(cancelling.notStopped.length).toBeGreaterThan(0);
  expect(cancelling.notStopped.length).toBeLessThanOrEqual(10);
  // Whoever took the request does not live to pass it on.
  family.api.process.kill("SIGKILL");
  await killAtRandom({ worker, busy, sweeper });

  await untilTree(
    "every live run to have been asked",
    (rows) => rows.every(({ asked, ended }) => asked || ended),
    STOP_MS,
  );
  family.outside.ledger.push({ operationId: "told", order: "all" });
  const stopped = await untilTree("every run to have stopped", (rows) => rows.every(({ ended }) => ended), STOP_MS);

  const wrong = stopped.filter(({ status, ended_before }) => !ended_before && status !== "cancelled");
  expect(wrong).toEqual([]);
  const before = stopped.filter(({ ended_before }) => ended_before);
  expect(new Set(before.map(({ status }) => status))).toEqual(new Set(["completed"]));
  expect(before).toHaveLength(goals.filter((goal) => goal.startsWith("done ")).length);
  const { rows: late } = await family.store.pool.query(
    `select t.id from holdpoint.attempts t, holdpoint.runs top
       where top.id = (select id from holdpoint.runs where parent is null) and t.args_hash is not null
         and t.started_at > top.cancel_requested_at`,
  );
  expect(late).toEqual([]);
  const { rows: born } = await family.store.pool.query(
    `select k.id from holdpoint.runs k, holdpoint.runs top
       where top.parent is null and k.parent is not null and k.created_at > top.cancel_requested_at`,
  );
  expect(born).toEqual([]);
  // Outside as well: every operation once.
  const sent = family.outside.ledger.map(({ operationId }) => operationId);
  expect(new Set(sent).size).toBe(sent.length);
  expect(await findViolations(family.store)).toEqual([]);
});
