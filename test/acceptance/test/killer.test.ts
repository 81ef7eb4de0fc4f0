import { describe, expect, test } from "vitest";
import {
  chooseDelayMs,
  chooseVictim,
  createRandomSource,
  type Kill,
  type KillChoices,
  type KillPlan,
  runKiller,
} from "../tau-retail/killer.ts";

const plan: KillPlan = { kills: 6, killsAfterWrite: 2, minDelayMs: 100, maxDelayMs: 400, machineShare: 0 };
const workerPids = [11, 12, 13];
const held = [{ operationId: "op-1", workerPid: 12 }];
const scope = "process";
const atRandom: Kill = { pid: 11, afterWrite: null, scope };

/** A killer in a world where nothing changes, with every pause recorded instead of waited. */
function killerIn(world: () => KillChoices, seed: string) {
  const pauses: number[] = [];
  const deps = {
    random: createRandomSource(seed),
    kill: () => true,
    onKill: () => undefined,
    choices: async () => world(),
    wait: async (ms: number) => {
      pauses.push(ms);
    },
  };
  return { deps, pauses };
}

describe("createRandomSource", () => {
  test("repeats itself for one seed and differs for another", () => {
    const draw = (seed: string) => Array.from({ length: 5 }, createRandomSource(seed));
    expect(draw("a")).toEqual(draw("a"));
    expect(draw("a")).not.toEqual(draw("b"));
  });

  test("spreads evenly over [0, 1)", () => {
    const random = createRandomSource("spread");
    const tenths = new Array<number>(10).fill(0);
    for (let draw = 0; draw < 10_000; draw += 1) {
      const tenth = Math.floor(random() * 10);
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    for (const count of tenths) expect(Math.abs(count - 1_000)).toBeLessThan(150);
    expect(tenths).toHaveLength(10);
  });
});

describe("chooseDelayMs", () => {
  test("stays within the plan's range, ends included", () => {
    expect(chooseDelayMs(() => 0, plan)).toBe(100);
    expect(chooseDelayMs(() => 1 - Number.EPSILON, plan)).toBe(400);
  });
});

describe("chooseVictim", () => {
  const choose = (log: readonly Kill[], choices: KillChoices) => chooseVictim(() => 0, { plan, log }, choices);

  test("prefers a process whose write has left", () => {
    expect(choose([], { workerPids, held })).toEqual({ pid: 12, afterWrite: "op-1", scope });
  });

  test("takes any live process where no reply is held, or where enough were killed after a write", () => {
    expect(choose([], { workerPids, held: [] })).toEqual(atRandom);
    const enough: readonly Kill[] = [
      { pid: 1, afterWrite: "a", scope },
      { pid: 2, afterWrite: "b", scope },
    ];
    expect(choose(enough, { workerPids, held })).toEqual(atRandom);
  });

  test("counts a victim at random as after a write where it had one out", () => {
    const enough: readonly Kill[] = [
      { pid: 1, afterWrite: "a", scope },
      { pid: 2, afterWrite: "b", scope },
    ];
    expect(choose(enough, { workerPids: [12], held })).toEqual({ pid: 12, afterWrite: "op-1", scope });
  });

  test("never names a process that is not alive or that sent no pid", () => {
    const gone = [
      { operationId: "op-2", workerPid: 99 },
      { operationId: "op-3", workerPid: null },
    ];
    expect(choose([], { workerPids, held: gone })).toEqual(atRandom);
    expect(choose([], { workerPids: [], held: gone })).toBeNull();
  });

  test("waits for a held reply when all kills that are left must be after a write", () => {
    const used = Array.from({ length: 4 }, () => atRandom);
    expect(choose(used, { workerPids, held: [] })).toBeNull();
    expect(choose(used, { workerPids, held })).toEqual({ pid: 12, afterWrite: "op-1", scope });
  });
});

describe("chooseVictim with whole machines", () => {
  const scopes = (machineShare: number) => {
    const random = createRandomSource("machines");
    const choose = () => chooseVictim(random, { plan: { ...plan, machineShare }, log: [] }, { workerPids, held });
    return Array.from({ length: 1_000 }, () => choose()?.scope).filter((chosen) => chosen === "machine").length;
  };

  test("takes the planned share of them", () => {
    expect(scopes(0)).toBe(0);
    expect(scopes(1)).toBe(1_000);
    expect(Math.abs(scopes(0.2) - 200)).toBeLessThan(60);
  });
});

describe("runKiller", () => {
  test("carries out the whole plan and repeats victims and pauses for one seed", async () => {
    const world = () => ({ workerPids, held });
    const [first, second] = [killerIn(world, "s"), killerIn(world, "s")];
    const never = new AbortController().signal;
    const heard: Kill[] = [];
    const log = await runKiller({ ...first.deps, onKill: (kill) => heard.push(kill) }, plan, never);
    expect(heard).toEqual(log);
    expect(log).toEqual(await runKiller(second.deps, plan, never));
    expect(first.pauses).toEqual(second.pauses);
    expect(log).toHaveLength(plan.kills);
    expect(log.filter((kill) => kill.afterWrite !== null).length).toBeGreaterThanOrEqual(plan.killsAfterWrite);
  });

  test("does not count a process that had already ended", async () => {
    const { deps, pauses } = killerIn(() => ({ workerPids, held }), "s");
    let asked = 0;
    const kill = () => {
      asked += 1;
      return asked > 1;
    };
    expect(await runKiller({ ...deps, kill }, plan, new AbortController().signal)).toHaveLength(plan.kills);
    expect(pauses).toHaveLength(plan.kills + 1);
  });

  test("ends early when it is told to, also in the middle of a pause", async () => {
    const stop = new AbortController();
    const { deps } = killerIn(() => ({ workerPids, held }), "s");
    let waits = 0;
    const wait = async () => {
      waits += 1;
      if (waits < 3) return;
      stop.abort();
      throw stop.signal.reason;
    };
    expect(await runKiller({ ...deps, wait }, plan, stop.signal)).toHaveLength(2);
  });

  test("passes on what went wrong with looking", async () => {
    const { deps } = killerIn(() => ({ workerPids, held }), "s");
    const choices = async () => {
      throw new Error("the store is gone");
    };
    await expect(runKiller({ ...deps, choices }, plan, new AbortController().signal)).rejects.toThrow(
      "the store is gone",
    );
  });
});
