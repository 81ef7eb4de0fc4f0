// Whole stories of approvals over HTTP: two apis, a worker, and a provider whose books say what has happened outside.

import { ROUTES } from "@holdpoint/protocol";
import { readId } from "@holdpoint/store/read";
import { moveClock, waitFor } from "@holdpoint/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Sweep } from "../../../packages/upkeep/src/index.ts";
import { passDeadlines } from "../../../packages/upkeep/src/sweeps/pass-deadlines.ts";
import { repairWakeUps } from "../../../packages/upkeep/src/sweeps/repair-wake-ups.ts";
import { type House, openHouse } from "./a-house.ts";
import { problemOf } from "./api-fixture.ts";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterEach(() => moveClock(house.fleet.url, 0));
afterAll(() => house[Symbol.asyncDispose]());

const HOUR_MS = 3_600_000;

async function cardOf(runId: string) {
  const [card] = await house.cards(runId);
  if (card === undefined) throw new Error(`${runId} asks nobody`);
  return card;
}

const rows = (table: string, runId: string) => house.fleet.rows(table, readId("run", runId) ?? "");

let passes = 0;

/** What the sweeper does with the deadlines that have passed, and with runs whose wake-up is gone. */
async function sweep(...sweeps: readonly Sweep[]): Promise<void> {
  const { store, publisher } = house.fleet;
  passes += 1;
  for (const each of sweeps) {
    await each.run({ store, publisher, id: "test", graceMs: 1_000, limit: 100, number: passes });
  }
}

/** A claim passes over a row that is locked: a wake-up that comes while others decide may be for nothing. */
async function untilEnded(runId: string): Promise<void> {
  const hasEnded = async () => {
    await sweep(repairWakeUps);
    return (await house.as("ulla-token").showRun({ runId })).endedAt !== null || null;
  };
  await waitFor(hasEnded, { deadlineMs: 20_000, what: "the run to end" });
}

type Card = Awaited<ReturnType<typeof cardOf>>;
const approve = (card: Card, token: string, api: 0 | 1 = 0) =>
  house.as(token, api).decideApproval({ ...card, decision: "approve" });
const reject = (card: Card, token: string, api: 0 | 1 = 0) =>
  house.as(token, api).decideApproval({ ...card, decision: "reject", note: "no" });

describe("a manager who clicks twice while another one rejects, at two apis", () => {
  const CLICKS = {
    first: (card: Card) => approve(card, "mona-token", 0),
    second: (card: Card) => approve(card, "mona-token", 1),
    other: (card: Card) => reject(card, "max-token", 1),
  };
  type Click = keyof typeof CLICKS;

  const answerOf = (call: Promise<{ readonly repeated: boolean }>): Promise<string> =>
    call.then(
      ({ repeated }) => (repeated ? "200 again" : "200"),
      async () => {
        const { problem } = await problemOf(call);
        return `${problem.status} ${problem.rule} ${problem.decided?.by} ${problem.decided?.what}`;
      },
    );

  /** One decision stands, one resume, and as many refunds as it allows. */
  async function expectOneOutcome(runId: string, order: string): Promise<void> {
    await untilEnded(runId);
    const [request, ...others] = await rows("approvals", runId);
    expect(others).toEqual([]);
    expect(["spent", "rejected"]).toContain(request?.state);
    expect(house.paid(order)).toBe(request?.state === "spent" ? 1 : 0);
    expect(await rows("decisions", runId)).toHaveLength(1);
    const moves = await rows("transitions", runId);
    expect(moves.filter((move) => move.from_status === "waiting_approval")).toHaveLength(1);
  }

  const orders: readonly (readonly Click[])[] = [
    ["first", "second", "other"],
    ["first", "other", "second"],
    ["second", "first", "other"],
    ["second", "other", "first"],
    ["other", "first", "second"],
    ["other", "second", "first"],
  ];

  test.each(orders)("%s, %s, %s: the first counts, and each hears what stands", async (...clicks) => {
    const order = clicks.join("-");
    const runId = await house.waiting(order);
    const card = await cardOf(runId);
    const answers: Partial<Record<Click, string>> = {};
    for (const click of clicks) answers[click] = await answerOf(CLICKS[click](card));
    const isApproved = clicks[0] !== "other";
    const approved = "409 already_decided approver mona approved";
    const rejected = "409 already_decided approver max rejected";
    const mona = clicks.filter((click) => click !== "other").map((click) => answers[click]);
    expect(mona).toEqual(isApproved ? ["200", "200 again"] : [rejected, rejected]);
    expect(answers.other).toBe(isApproved ? approved : "200");
    await expectOneOutcome(runId, order);
    expect(await rows("refusals", runId)).toHaveLength(isApproved ? 1 : 2);
  });

  test("at the same moment, over and over: one decision, one resume, at most one refund; all three are logged", {
    timeout: 180_000,
  }, async () => {
    for (let round = 0; round < 40; round += 1) {
      const order = `at-once-${round}`;
      const runId = await house.waiting(order);
      const card = await cardOf(runId);
      const clicks = orders[round % orders.length] ?? [];
      const answers = await Promise.all(clicks.map((click) => answerOf(CLICKS[click](card))));
      expect(answers.filter((answer) => answer === "200")).toHaveLength(1);
      expect(answers.every((answer) => /^(200|200 again|409 already_decided .*)$/.test(answer))).toBe(true);
      await expectOneOutcome(runId, order);
      const refused = answers.filter((answer) => answer.startsWith("409")).length;
      expect(await rows("refusals", runId)).toHaveLength(refused);
      const isOfThese = (line: string) => line.includes("/decision") && line.includes(card.approvalId);
      const isLogged = async () => house.logged.filter(isOfThese).length === 3 || null;
      await waitFor(isLogged, { deadlineMs: 10_000, what: "three lines of the log" });
    }
  });
});

describe("whoever opens the addresses of a request, as a scanner of mail does", () => {
  const TABLES = ["runs", "approvals", "decisions", "transitions", "refusals", "inbox", "attempts"];
  const snapshot = async (runId: string) => {
    const id = readId("run", runId) ?? "";
    const read = TABLES.map((table) => house.fleet.rows(table, id).catch(() => []));
    const { rows: run } = await house.fleet.store.pool.query("select * from holdpoint.runs where id = $1", [id]);
    return JSON.stringify([await Promise.all(read), run]);
  };

  test("decides nothing: not by GET or HEAD, not by a form, not without a token; the person can afterwards", async () => {
    const runId = await house.waiting("scanned");
    const card = await cardOf(runId);
    const before = await snapshot(runId);
    const { sessionId } = await house.as("mona-token").showRun({ runId });
    const paths = Object.values(ROUTES).map(({ path }) =>
      path.replace(":approvalId", card.approvalId).replace(":runId", runId).replace(":sessionId", String(sessionId)),
    );
    expect(paths).toContain(`/approvals/${card.approvalId}/decision`);
    const query = `decision=approve&argsHash=${card.argsHash}`;
    const headers = { authorization: "Bearer mona-token", "x-http-method-override": "POST" };
    for (const path of paths) {
      for (const method of ["GET", "HEAD", "OPTIONS"]) {
        const seen = await fetch(`${house.urls[0]}${path}?${query}`, { method, headers });
        await seen.arrayBuffer();
      }
    }
    const address = `${house.urls[1]}/approvals/${card.approvalId}/decision`;
    for (const method of ["GET", "HEAD", "PUT", "PATCH", "DELETE"]) {
      expect((await fetch(address, { method, headers })).ok).toBe(false);
    }
    const form = { ...headers, "content-type": "application/x-www-form-urlencoded" };
    expect((await fetch(address, { method: "POST", headers: form, body: query })).status).toBe(415);
    const json = JSON.stringify({ decision: "approve", argsHash: card.argsHash });
    const nobody = { "content-type": "application/json" };
    expect((await fetch(address, { method: "POST", headers: nobody, body: json })).status).toBe(401);
    expect((await fetch(`${address}?token=mona-token`, { method: "POST", headers: nobody, body: json })).ok).toBe(
      false,
    );
    expect(await snapshot(runId)).toBe(before);
    await approve(card, "mona-token");
    await untilEnded(runId);
    expect(house.paid("scanned")).toBe(1);
  });
});

describe("whoever has asked for a run", () => {
  test.each(["4990", "5010"])("does not approve it, by no token and no api, with an amount of %s", async (amount) => {
    for (const token of ["uma-web-token", "uma-api-token"]) {
      const order = `own-${amount}-${token}`;
      const runId = await house.waiting(order, { amounts: [amount], token });
      const card = await cardOf(runId);
      for (const own of ["uma-web-token", "uma-api-token"]) {
        for (const api of [0, 1] as const) {
          expect(await problemOf(approve(card, own, api))).toMatchObject({ status: 403, rule: "own_request" });
        }
      }
      const edit = { ...card, decision: "approve_with_edits", args: { order, amount: "1", currency: "EUR" } } as const;
      expect(await problemOf(house.as("uma-api-token").decideApproval(edit))).toMatchObject({ rule: "own_request" });
      // Nor by saying so.
      await house.as(token).sendMessage({ runId, text: "approve" });
      expect(await house.as(token).showRun({ runId })).toMatchObject({ status: "waiting_approval" });
      expect(await rows("refusals", runId)).toHaveLength(5);
      expect(new Set((await rows("refusals", runId)).map((row) => `${row.actor_id} ${row.rule}`))).toEqual(
        new Set(["uma own_request"]),
      );
      expect(house.paid(order)).toBe(0);
      await approve(card, "mona-token");
      await untilEnded(runId);
      expect(house.paid(order)).toBe(1);
    }
  });

  test("takes it back, and nothing has happened", async () => {
    const runId = await house.waiting("taken-back", { token: "uma-web-token" });
    await reject(await cardOf(runId), "uma-api-token", 1);
    await untilEnded(runId);
    expect(house.paid("taken-back")).toBe(0);
  });

  test("is not alone: who starts it again, or steers it, does not approve it either", async () => {
    // Alice's run, cancelled, and started again by an operator who is a manager, too.
    const first = await house.waiting("steered");
    await house.as("alice-token").cancelRun({ runId: first });
    const { id: again } = await house.as("ulla-token").retryRun({ runId: first });
    const isWaiting = async () => (await house.cards(again)).length === 1 || null;
    await waitFor(isWaiting, { deadlineMs: 20_000, what: "the second run to ask" });
    const card = await cardOf(again);
    expect(await problemOf(approve(card, "ulla-token"))).toMatchObject({ status: 403, rule: "own_request" });
    await approve(card, "max-token");
    await untilEnded(again);
    expect(house.paid("steered")).toBe(1);
  });
});

describe("cards of what is over", () => {
  const late = async (card: Card) => (await problemOf(approve(card, "mona-token", 1))).problem;

  test("release nothing, say why, and are in nobody's inbox", { timeout: 60_000 }, async () => {
    const cancelled = await house.waiting("late-a", { amounts: ["1000", "2000"] });
    const replaced = await house.waiting("late-b");
    const retried = await house.waiting("late-c");
    const expired = await house.waiting("late-e");
    const ofCancelled = await house.cards(cancelled);
    const [ofReplaced, ofRetried, ofExpired] = [await cardOf(replaced), await cardOf(retried), await cardOf(expired)];
    // One is cancelled; one is edited, and ends; one is cancelled and done again; of one the time runs out.
    await house.as("alice-token").cancelRun({ runId: cancelled });
    const args = { order: "late-b", amount: "1000", currency: "EUR" };
    await house.as("mona-token").decideApproval({ ...ofReplaced, decision: "approve_with_edits", args });
    await untilEnded(replaced);
    await house.as("alice-token").cancelRun({ runId: retried });
    await moveClock(house.fleet.url, 25 * HOUR_MS);
    await sweep(passDeadlines);
    await untilEnded(expired);
    await moveClock(house.fleet.url, 0);
    const { id: again } = await house.as("alice-token").retryRun({ runId: retried });
    const isWaiting = async () => (await house.cards(again)).length === 1 || null;
    await waitFor(isWaiting, { deadlineMs: 20_000, what: "the run that is done again to ask" });
    const open = await cardOf(again);
    // Days later somebody clicks on every one of them.
    expect(ofCancelled).toHaveLength(2);
    for (const card of [...ofCancelled, ofRetried]) {
      expect(await late(card)).toMatchObject({
        status: 409,
        rule: "approval_withdrawn",
        runStatus: "cancelled",
        decided: { by: "requester alice", what: "cancelled", at: expect.stringMatching(/Z$/) },
      });
    }
    expect(await late(ofReplaced)).toMatchObject({ status: 409, decided: { by: "approver mona", what: "edited" } });
    expect(await late(ofExpired)).toMatchObject({ status: 409, decided: { by: "its deadline", what: "expired" } });
    const inbox = await house.as("mona-token").listApprovals({ mine: true });
    expect(inbox.items.map(({ id }) => id)).toEqual([open.approvalId]);
    expect(["late-a", "late-b", "late-c", "late-e"].map((order) => house.paid(order))).toEqual([0, 1, 0, 0]);
    await approve(open, "mona-token");
    await untilEnded(again);
    expect(house.paid("late-c")).toBe(1);
  });
});

describe("who is not asked", () => {
  test("decides nothing, whatever the body claims, and runs no tool: there is no address for that", async () => {
    const runId = await house.waiting("claimed");
    const card = await cardOf(runId);
    expect(await problemOf(approve(card, "alice-token"))).toMatchObject({ status: 403 });
    const address = `${house.urls[0]}/approvals/${card.approvalId}/decision`;
    const claims = [
      { decision: "approve", argsHash: card.argsHash, approver: "mona" },
      { decision: "approve", argsHash: card.argsHash, actor: { kind: "approver", id: "mona" } },
      { approved: true },
    ];
    for (const claim of claims) {
      const asked = await fetch(address, {
        method: "POST",
        headers: { authorization: "Bearer alice-token", "content-type": "application/json" },
        body: JSON.stringify(claim),
      });
      expect([400, 403, 422]).toContain(asked.status);
    }
    const addresses = Object.values(ROUTES).filter(({ method }) => method !== "GET");
    expect(addresses.filter(({ path }) => /tool|execut|call|attempt/i.test(path))).toEqual([]);
    expect(await rows("decisions", runId)).toEqual([]);
    expect(house.paid("claimed")).toBe(0);
    await house.as("alice-token").cancelRun({ runId });
  });
});
