import { claimRuns, isUnloaded, newId, openCommitGroup, registerWorker, type Store } from "@holdpoint/store";
import { scriptedModel } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../src/clock.ts";
import { defineAgent } from "../src/index.ts";
import { judgeCalls } from "../src/judge-calls.ts";
import type { Lease } from "../src/lease.ts";
import { OwnedRun } from "../src/owned-run.ts";
import { openServiceBoard } from "../src/service-board.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const AGENT = defineAgent({
  name: "owned",
  version: "1",
  model: scriptedModel([]),
  instructions: "",
  tools: [],
  complete: () => null,
});

/** The store, but one answer gets lost after its statement took effect, and `meanwhile` happens before that is noticed. */
function losing(store: Store, meanwhile: () => Promise<void>): Store {
  let isArmed = true;
  const query = async (config: { text: string }): Promise<unknown> => {
    const answer = await store.pool.query(config);
    if (!isArmed || !config.text.includes("moved as (")) return answer;
    isArmed = false;
    await meanwhile();
    throw new Error("Query read timeout");
  };
  // Only what a statement uses.
  return { ...store, pool: { query } } as unknown as Store;
}

test("a loop whose answer was lost does not adopt the claim that its own process has made meanwhile", async () => {
  const { store } = fleet;
  await (await fleet.start(AGENT)).drain(0);
  const run = await fleet.submitQuietly(AGENT);
  const workerId = newId();
  await registerWorker(store, { id: workerId, host: "test", pid: 1, agents: [AGENT], slots: 1, leaseMs: 60_000 });
  const claim = { runIds: [run.id], workerId, progressMs: 60_000, mayTakeSuspect: true };
  const claimed = async () => {
    const [loaded] = await claimRuns(store, claim);
    if (loaded === undefined || isUnloaded(loaded)) throw new Error("not claimed");
    return loaded;
  };
  // It is asked nothing but whether it lasts.
  const lease = { isValid: () => true } as Lease;
  const options = {
    group: openCommitGroup(store),
    lease,
    agent: AGENT,
    workerId,
    progressMs: 60_000,
    clock: systemClock,
    services: openServiceBoard(),
  };
  const first = await claimed();
  let second: OwnedRun | null = null;
  const lossy = losing(store, async () => {
    second = new OwnedRun({ ...options, store }, await claimed());
  });
  const old = new OwnedRun({ ...options, store: lossy, group: openCommitGroup(lossy) }, first);
  expect(await old.move([{ type: "Released", retryAt: null }])).toMatchObject({ result: "given" });

  const [judged] = judgeCalls(AGENT, [{ toolCallId: "t1", tool: "pay", input: {}, problem: null }], 1);
  if (judged === undefined) throw new Error("there must be a call");
  const effect = {
    kind: "effect",
    keyValidForMs: null,
    lookUpSettlesWithinMs: null,
    equalCallsAreDistinct: false,
    settlement: null,
  } as const;
  const call = { ...judged, effect, verdict: { kind: "allowed" } as const };
  const callId = call.id;
  const intent = () => ({
    steps: [],
    start: {
      body: { kind: "intent", callId, attempt: 1 } as const,
      attemptId: newId(),
      deadlineMs: 1_000,
      externalRef: "op",
      argsHash: call.argsHash,
      approvalId: null,
      policyRevision: first.policyRevision,
      supersedes: null,
    },
    currentStep: "pay",
    progress: false,
  });
  const owner = second as OwnedRun | null;
  const reply = { kind: "model_reply", turn: 1, message: {}, text: "", callIds: [callId], outcome: null } as const;
  const usage = { inputTokens: 1, outputTokens: 1 };
  const asked = { steps: [{ ...reply, usage }], calls: [call] };
  await owner?.commit({ ...asked, currentStep: "model", progress: true });
  expect(await owner?.commit(intent())).toEqual({ result: "taken", started: true, refusal: null });
  expect(await old.commit(intent())).toEqual({ result: "replaced" });
  // Another intent of the same claim that looks like the first is not taken for it.
  const { epoch, stepSeq } = first.run;
  const known = { ...first, run: { ...first.run, epoch: epoch + 1, stepSeq: stepSeq + 1 } };
  const stale = new OwnedRun({ ...options, store }, known);
  expect(await stale.commit(intent())).toMatchObject({ result: "changed" });
  const open = await fleet.rows("attempts", run.id);
  expect(open).toHaveLength(1);
  await owner?.commit({
    steps: [{ kind: "did_not_happen", callId, attempt: 1 }],
    settles: [{ attemptId: String(open[0]?.id), outcome: "did_not_happen", settledBy: "test" }],
    currentStep: "pay",
    progress: false,
  });
});
