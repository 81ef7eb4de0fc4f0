import { LONE_TAKEOVERS } from "@holdpoint/core";
import {
  commitSteps,
  findOwnedBy,
  newId,
  registerWorker,
  requestCancel,
  type Store,
  transitionOne,
} from "@holdpoint/store";
import { scriptedModel } from "@holdpoint/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Claimed,
  type ClaimGroup,
  type ClaimGroupOptions,
  type ClaimReport,
  openClaimGroup,
} from "../src/claim-group.ts";
import { defineAgent } from "../src/index.ts";
import { brokenConnection, faultyStore, type Sending } from "./faulty-store.ts";
import { ALICE, type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});

afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
});

const AGENT = defineAgent({
  name: "claimed",
  version: "1",
  model: scriptedModel([]),
  instructions: "",
  tools: [],
  complete: () => null,
});

async function openGroup(overrides: Partial<ClaimGroupOptions> = {}) {
  const { workerId = newId() } = overrides;
  await registerWorker(fleet.store, { id: workerId, host: "test", pid: 1, agents: [AGENT], slots: 4, leaseMs: 60_000 });
  return openClaimGroup({
    store: fleet.store,
    workerId,
    progressMs: 60_000,
    lease: { isValid: () => true },
    drained: new AbortController().signal,
    log: pino({ level: "silent" }),
    ...overrides,
  });
}

async function submitted(count: number): Promise<readonly string[]> {
  const worker = await fleet.start(AGENT);
  await worker.drain(0);
  const runs = await Promise.all(Array.from({ length: count }, () => fleet.submitQuietly(AGENT)));
  // In the order in which a claim takes them.
  return runs.map(({ id }) => id).sort();
}

async function suspect(runIds: readonly string[]): Promise<void> {
  const sql = "update holdpoint.runs set takeovers = $1 where id = any($2::uuid[])";
  await fleet.store.pool.query(sql, [LONE_TAKEOVERS, runIds]);
}

async function ownedBy(workerId: string): Promise<readonly string[]> {
  return (await findOwnedBy(fleet.store, workerId, 100)).map(({ run }) => run.id);
}

/** A store that breaks the connection after the first claims, whose effect stays, and before what `breaks` says. */
function losingAnswers(claims: number, breaks: (verb: string) => boolean = () => false): Store {
  let left = claims;
  return faultyStore(fleet.store, async ({ verb, send }) => {
    if (breaks(verb)) throw brokenConnection();
    const answer = await send();
    if (verb !== "claim_runs" || left === 0) return answer;
    left -= 1;
    throw brokenConnection();
  });
}

/** A store whose answers about a run have a call that nobody can read. */
function unreadable(runId: string, meet = ({ send }: Sending) => send()): Store {
  return faultyStore(fleet.store, async (sending) => {
    const answer = await meet(sending);
    for (const row of answer.rows)
      if (JSON.stringify(row.run ?? null).includes(`"id":"${runId}"`) && "calls" in row) row.calls = [{ args: "{" }];
    return answer;
  });
}

/** Stores a step of a claimed run, and gives it back. */
async function goOn(claimed: Claimed | null): Promise<void> {
  if (claimed === null) throw new Error("Nothing was claimed");
  const { run } = claimed.loaded;
  const owner = { runId: run.id, workerId: run.state.owner ?? "", epoch: run.epoch };
  const step = { kind: "operator", choice: "retry", callId: null } as const;
  const [taken] = await commitSteps(fleet.store, [
    { ...owner, stepSeq: 0, steps: [step], start: null, checkpoint: run.checkpoint, ...PROGRESS },
  ]);
  expect(taken).toMatchObject({ result: "taken" });
  const now = (await fleet.load(run.id)).run;
  const actor = { kind: "worker", id: owner.workerId } as const;
  const given = await transitionOne(fleet.store, { run: now, events: [{ type: "Released", retryAt: null }], actor });
  expect(given.result).toBe("accepted");
  claimed.end();
}

const PROGRESS = { currentStep: "step", progressMs: 60_000, progress: true } as const;

/** The first wake-up of a run. */
const newly = (runId: string) => ({ runId, version: 1 });

/** Claims in one statement. */
function together(group: ClaimGroup, runIds: readonly string[]) {
  return Promise.allSettled(runIds.map((id) => group.claim(newly(id))));
}

test("wake-ups that come together are claimed together, and two for one run give it once", async () => {
  const [first, second] = await submitted(2);
  const group = await openGroup();
  const claims = await Promise.all([first, first, second, newId()].map((id) => group.claim(newly(id ?? ""))));
  expect(claims.map((claimed) => claimed?.loaded.run.id ?? null)).toEqual([first, null, second, null]);
});

test("a wake-up that takes a run for a new one which it is not loads all of it", async () => {
  const [runId = "", other = ""] = await submitted(2);
  const group = await openGroup();
  const first = await group.claim(newly(runId));
  await goOn(first);
  const [again, fresh] = await Promise.all([runId, other].map((id) => group.claim(newly(id))));
  expect(again?.loaded).toEqual({ ...(await fleet.load(runId)), nowMs: expect.any(Number) });
  expect(again?.loaded.steps).toHaveLength(1);
  expect(fresh?.loaded).toEqual({ ...(await fleet.load(other)), nowMs: expect.any(Number) });
});

test("of several suspects a process claims one, and the next when it has done with that", async () => {
  const runIds = await submitted(3);
  await suspect(runIds);
  const group = await openGroup();
  const together = await Promise.all(runIds.map((id) => group.claim(newly(id))));
  const taken = together.filter((claimed) => claimed !== null);
  expect(taken).toHaveLength(1);
  const left = runIds.filter((id) => id !== taken[0]?.loaded.run.id);
  expect(await group.claim(newly(left[0] ?? ""))).toBeNull();
  taken[0]?.end();
  expect((await group.claim(newly(left[0] ?? "")))?.loaded.run.id).toBe(left[0]);
});

test("a claim that the database refuses fails by itself, and takes no other along", async () => {
  const [first, second] = await submitted(2);
  const group = await openGroup();
  const [bad, good] = await together(group, ["not an id", first ?? ""]);
  expect(bad).toMatchObject({
    status: "rejected",
    reason: { message: expect.stringContaining("invalid input syntax") },
  });
  expect(good).toMatchObject({ status: "fulfilled", value: { loaded: { run: { id: first } } } });
  expect((await group.claim(newly(second ?? "")))?.loaded.run.id).toBe(second);
});

describe("what is told of a batch", () => {
  test("is what it has claimed, what it found nobody to claim for, what was lost before, and what failed", async () => {
    const [first = "", second = ""] = await submitted(2);
    await fleet.store.pool.query("update holdpoint.runs set takeovers = 1 where id = $1", [second]);
    const told: ClaimReport[] = [];
    const group = await openGroup({ onClaim: (report) => told.push(report) });
    const wakeUps = [first, first, second, newId(), "not an id"];
    await Promise.allSettled(wakeUps.map((id) => group.claim(newly(id))));
    expect(told).toEqual([
      {
        ...{ size: 5, claimed: 2, takeovers: 1, missed: 2, splitOff: 1 },
        waitedMs: expect.any(Number),
        tookMs: expect.any(Number),
      },
    ]);
    expect(told[0]?.tookMs).toBeGreaterThan(0);
    expect(told[0]?.waitedMs).toBeGreaterThanOrEqual(0);
  });
});

describe("when the claim's answer is lost", () => {
  test("what it has taken is found by its rows, and worked on", async () => {
    const runIds = await submitted(2);
    const group = await openGroup({ store: losingAnswers(1) });
    const claims = await together(group, runIds);
    const running = runIds.map((id) => ({ value: { loaded: { run: { id, state: { status: "running" } } } } }));
    expect(claims).toMatchObject(running);
  });

  test("it is asked for as long as the lease lasts", async () => {
    const [runId = ""] = await submitted(1);
    let away = 3;
    const store = losingAnswers(1, (verb) => verb === "find_own_runs" && away-- > 0);
    const group = await openGroup({ store });
    expect((await group.claim(newly(runId)))?.loaded.run.id).toBe(runId);
    expect(away).toBeLessThan(0);
  });

  test("nothing is asked once the lease is over: the worker is gone, and the sweep finds its runs", async () => {
    const [runId = ""] = await submitted(1);
    const store = losingAnswers(1, (verb) => verb === "find_own_runs");
    const group = await openGroup({ store, lease: { isValid: () => false } });
    await expect(group.claim(newly(runId))).rejects.toThrow("ECONNRESET");
  });

  test("a run that this process works on already stays with that work", async () => {
    const [runId = "", other = ""] = await submitted(2);
    let losing = false;
    const store = faultyStore(fleet.store, async ({ verb, send }) => {
      const answer = await send();
      if (losing && verb === "claim_runs") throw brokenConnection();
      return answer;
    });
    const group = await openGroup({ store });
    const first = await group.claim(newly(runId));
    losing = true;
    const [again, taken] = await together(group, [runId, other]);
    expect(again?.status).toBe("rejected");
    expect(taken).toMatchObject({ status: "fulfilled", value: { loaded: { run: { id: other } } } });
    expect((await fleet.load(runId)).run).toEqual(first?.loaded.run);
  });

  test("a run that cannot be loaded then is given back", async () => {
    const [runId = ""] = await submitted(1);
    const workerId = newId();
    const group = await openGroup({ workerId, store: losingAnswers(1, (verb) => verb === "load_run") });
    await expect(group.claim(newly(runId))).rejects.toThrow("ECONNRESET");
    expect(await ownedBy(workerId)).toEqual([]);
    expect((await fleet.load(runId)).run.state.status).toBe("queued");
  });

  test("a suspect among them counts as one", async () => {
    const runIds = await submitted(2);
    await suspect(runIds);
    const group = await openGroup({ store: losingAnswers(1) });
    const [first, second] = await together(group, runIds);
    expect(first).toMatchObject({ status: "fulfilled", value: { loaded: { run: { id: runIds[0] } } } });
    expect(second?.status).toBe("rejected");
    expect(await group.claim(newly(runIds[1] ?? ""))).toBeNull();
  });
});

describe("a run that cannot be read", () => {
  test("is given to an operator, and the others of its batch are worked on", async () => {
    const [bad = "", good = ""] = await submitted(2);
    const workerId = newId();
    const group = await openGroup({ workerId, store: unreadable(bad) });
    const [first, second] = await together(group, [bad, good]);
    expect(first).toMatchObject({ status: "rejected", reason: { name: "SyntaxError" } });
    expect(second).toMatchObject({ status: "fulfilled", value: { loaded: { run: { id: good } } } });
    expect(await ownedBy(workerId)).toEqual([good]);
    expect((await fleet.load(bad)).run.state).toMatchObject({
      status: "waiting_operator",
      waitingFor: { reason: "agent_error" },
    });
  });

  test("is given away although somebody moves it meanwhile and the database is away at first", async () => {
    const [bad = ""] = await submitted(1);
    const workerId = newId();
    let tries = 0;
    const store = unreadable(bad, async ({ verb, send }) => {
      if (verb !== "transition_waiting") return send();
      tries += 1;
      if (tries === 1) throw brokenConnection();
      if (tries === 2) await requestCancel(fleet.store, { runId: bad, actor: ALICE, reason: null });
      return send();
    });
    const group = await openGroup({ workerId, store });
    await expect(group.claim(newly(bad))).rejects.toThrow(SyntaxError);
    expect(await ownedBy(workerId)).toEqual([]);
    expect((await fleet.load(bad)).run.state.status).toBe("cancelled");
  });
});
