import { LONE_TAKEOVERS } from "@holdpoint/core";
import { newId, registerWorker } from "@holdpoint/store";
import { scriptedModel } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openClaimGroup } from "../src/claim-group.ts";
import { defineAgent } from "../src/index.ts";
import { type Fleet, openFleet } from "./fleet.ts";

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

async function openGroup() {
  const workerId = newId();
  await registerWorker(fleet.store, { id: workerId, host: "test", pid: 1, agents: [AGENT], slots: 4, leaseMs: 60_000 });
  return openClaimGroup(fleet.store, { workerId, progressMs: 60_000 });
}

async function submitted(count: number): Promise<readonly string[]> {
  const worker = await fleet.start(AGENT);
  await worker.drain(0);
  const runs = await Promise.all(Array.from({ length: count }, () => fleet.submitQuietly(AGENT)));
  return runs.map(({ id }) => id);
}

async function suspect(runIds: readonly string[]): Promise<void> {
  const sql = "update holdpoint.runs set takeovers = $1 where id = any($2::uuid[])";
  await fleet.store.pool.query(sql, [LONE_TAKEOVERS, runIds]);
}

test("wake-ups that come together are claimed together, and two for one run give it once", async () => {
  const [first, second] = await submitted(2);
  const group = await openGroup();
  const claims = await Promise.all([first, first, second, newId()].map((id) => group.claim(id ?? "")));
  expect(claims.map((claimed) => claimed?.loaded.run.id ?? null)).toEqual([first, null, second, null]);
});

test("of several suspects a process claims one, and the next when it has done with that", async () => {
  const runIds = await submitted(3);
  await suspect(runIds);
  const group = await openGroup();
  const together = await Promise.all(runIds.map((id) => group.claim(id)));
  const taken = together.filter((claimed) => claimed !== null);
  expect(taken).toHaveLength(1);
  const left = runIds.filter((id) => id !== taken[0]?.loaded.run.id);
  expect(await group.claim(left[0] ?? "")).toBeNull();
  taken[0]?.end();
  expect((await group.claim(left[0] ?? ""))?.loaded.run.id).toBe(left[0]);
});

test("a claim that the database refuses fails, and the next one goes on", async () => {
  const [runId] = await submitted(1);
  const group = await openGroup();
  await expect(group.claim("not an id")).rejects.toThrow("invalid input syntax");
  expect((await group.claim(runId ?? ""))?.loaded.run.id).toBe(runId);
});
