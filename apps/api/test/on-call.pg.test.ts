import type { StepBody } from "@holdpoint/core";
import { recordLateEvidence, reportRecovered, reportTrouble } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, callForRefund, claim, move, startRefund, stored } from "./stage-run.ts";

const api = useTestApi();

const olga = () => api.as("olga-token");

/** A run whose refund was sent, and nobody knows how it ended. */
async function aSentRefund() {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const callId = await callForRefund(api.store, run.id, owner);
  const attemptId = await startRefund(api.store, run.id, { ...owner, callId });
  const event = { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null } as const;
  await move(api.store, { runId: run.id, workerId: owner.workerId, event });
  const [call] = (await olga().listCalls({ runId: run.id })).items;
  const [attempt] = call?.attempts ?? [];
  if (call === undefined || attempt === undefined || attempt.id === null) throw new Error("the refund was not sent");
  return { runId: run.id, callId, attemptId, workerId: owner.workerId, call, attempt: { ...attempt, id: attempt.id } };
}

type Sent = Awaited<ReturnType<typeof aSentRefund>>;

/** The worker that sent it comes back with how it ended, after all. */
async function lateWord({ runId, callId, attemptId, workerId }: Sent, outcome: "succeeded" | "failed") {
  const body: StepBody =
    outcome === "succeeded"
      ? { kind: "tool_result", callId, result: "succeeded", output: { refund: "re_9" } }
      : { kind: "call_failed", callId, attempt: 1, errorClass: "refused", code: "no_funds", retryInMs: 0 };
  const settle = { outcome, externalRef: "re_9", ...(outcome === "failed" ? { errorCode: "no_funds" } : {}) };
  return recordLateEvidence(api.store, { runId: stored(runId), attemptId, workerId, body, settle });
}

describe("runs by what is known outside", () => {
  test("are found by the provider's name, by the operation's id, and by either as one", async () => {
    const sent = await aSentRefund();
    const other = await aSentRefund();
    const found = async (filter: Parameters<ReturnType<typeof olga>["listRuns"]>[0]) =>
      (await olga().listRuns(filter)).items.map(({ id }) => id);
    const { operationId } = sent.call;
    expect(await found({ operationId })).toEqual([sent.runId]);
    expect(await found({ externalRef: operationId })).toEqual([sent.runId]);
    expect((await olga().showRun({ runId: sent.runId })).externalRef).toBe("op_1");
    expect(await found({ externalRef: "op_1" })).toEqual([other.runId, sent.runId]);
    const attempts = [sent.attempt.id];
    const done = { runId: sent.runId, choice: "mark_done", reason: "seen", attempts, result: {} } as const;
    await olga().decideAsOperator({ ...done, externalRef: "re_4411" });
    expect(await found({ externalRef: "re_4411" })).toEqual([sent.runId]);
    expect(await found({ externalRef: operationId })).toEqual([sent.runId]);
    expect(await found({ externalRef: "re_4411", status: ["completed"] })).toEqual([]);
    expect(await found({ operationId: "re_4411" })).toEqual([]);
    expect((await api.as("bob-token").listRuns({ externalRef: "re_4411" })).items).toEqual([]);
  });

  test("are refused by a name that no text can be", async () => {
    expect(await problemOf(olga().listRuns({ externalRef: "a\u0000b" }))).toMatchObject({ status: 400 });
  });
});

describe("findings", () => {
  test.each([
    ["not_established", "succeeded", true],
    ["not_established", "failed", false],
    ["mark_done", "failed", false],
  ] as const)("say of what was closed as %s and then %s whether it happened", async (choice, outcome, happened) => {
    const sent = await aSentRefund();
    const { runId, attempt } = sent;
    await olga().decideAsOperator({ runId, choice, reason: "closed", attempts: [attempt.id], result: {} });
    expect(await lateWord(sent, outcome)).toBe("finding");
    const [newest] = (await olga().listFindings({ limit: 1 })).items;
    expect(newest).toMatchObject({
      attemptId: attempt.id,
      runId,
      runStatus: "queued",
      tool: "send_refund",
      attempt: 1,
      settledAs: choice === "mark_done" ? "happened" : "not_established",
      settledBy: "person:olga",
      happened,
      evidence: { outcome, externalRef: "re_9", errorCode: outcome === "failed" ? "no_funds" : null },
    });
    const { items } = await olga().showTimeline({ runId });
    expect(items).toContainEqual(
      expect.objectContaining({ kind: "late_evidence", attemptId: attempt.id, outcome, settledAs: newest?.settledAs }),
    );
  });

  test("are only what says otherwise, the newest first, in pages", async () => {
    const agreeing = await aSentRefund();
    const settled = { choice: "mark_done", reason: "seen", result: {} } as const;
    await olga().decideAsOperator({ ...settled, runId: agreeing.runId, attempts: [agreeing.attempt.id] });
    expect(await lateWord(agreeing, "succeeded")).toBe("finding");
    const all = (await olga().listFindings()).items;
    expect(all.map(({ runId }) => runId)).not.toContain(agreeing.runId);
    expect(all.length).toBeGreaterThanOrEqual(3);
    const seen: string[] = [];
    for (let cursor: string | null = "", pages = 0; cursor !== null && pages < 20; pages += 1) {
      const page = await olga().listFindings({ limit: 1, ...(cursor === "" ? {} : { cursor }) });
      seen.push(...page.items.map(({ attemptId }) => attemptId));
      cursor = page.next;
    }
    expect(seen).toEqual(all.map(({ attemptId }) => attemptId));
    expect(all.map(({ at }) => at)).toEqual(
      all
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
    );
    expect(await olga().listFindings({ cursor: "nonsense" })).toEqual({ items: [], next: null });
  });
});

test("a service that turns everybody away is told with the runs that wait for it, and each of them says so", async () => {
  const name = "pay ments/é";
  await reportTrouble(api.store, { service: name, reason: "throttled", retryAfterMs: 60_000 });
  await reportTrouble(api.store, { service: "another", reason: "unavailable", retryAfterMs: null });
  const run = await aRun(api);
  const { workerId } = await claim(api.store, run.id);
  const [, closed] = (await olga().listServices()).items;
  expect(closed).toMatchObject({
    name,
    reason: "throttled",
    failures: 1,
    closed: true,
    probing: false,
    waitingRuns: 0,
  });
  const event = {
    type: "Held",
    hold: {
      kind: "dependency",
      waitingFor: { kind: "service", principal: name, subject: null, reason: "throttled" },
      deadline: { at: Date.parse(closed?.closedUntil ?? "") },
      onDeadline: "continue",
    },
  } as const;
  await move(api.store, { runId: run.id, workerId, event });
  const first = await olga().listServices({ limit: 1 });
  expect(first.items).toMatchObject([{ name: "another", closed: false, closedUntil: null, waitingRuns: 0 }]);
  expect(await olga().listServices({ limit: 1, cursor: first.next ?? "" })).toMatchObject({
    items: [{ name, waitingRuns: 1 }],
    next: null,
  });
  const waiting = await olga().showRun({ runId: run.id });
  expect(waiting.sentence).toBe(
    `Waits for the service ${name} (throttled) since ${waiting.since}, until ${closed?.closedUntil}; then it is tried again.`,
  );
  expect((await olga().listRuns({ waitingForKind: "service", waitingFor: name })).items).toHaveLength(1);
  await reportRecovered(api.store, "another");
  expect((await olga().listServices()).items).toHaveLength(1);
});

test("a run says who submitted it, and how long workers have had it", async () => {
  const alice = api.as("alice-token");
  const { id: sessionId } = await alice.createSession();
  const run = await olga().submitRun({ sessionId, agent: { name: "refunds", version: "1" }, goal: "refund" });
  expect(run).toMatchObject({ requester: "alice", submittedBy: "olga", workedMs: 0 });
  const { workerId } = await claim(api.store, run.id);
  await api.store.pool.query("update holdpoint.runs set claimed_at = claimed_at - interval '5 s' where id = $1", [
    stored(run.id),
  ]);
  expect((await alice.showRun({ runId: run.id })).workedMs).toBeGreaterThanOrEqual(5_000);
  await move(api.store, { runId: run.id, workerId, event: { type: "Released", retryAt: null } });
  const { workedMs } = await alice.showRun({ runId: run.id });
  expect(workedMs).toBeGreaterThanOrEqual(5_000);
  expect((await alice.showRun({ runId: run.id })).workedMs).toBe(workedMs);
});
