import { createHmac } from "node:crypto";
import { Problem } from "@holdpoint/protocol";
import { describe, expect, test } from "vitest";
import { SECRETS, useTestApi } from "./api-fixture.ts";
import { aRun, callForRefund, claim, commit, move, startRefund } from "./stage-run.ts";

const api = useTestApi();

const olga = () => api.as("olga-token");
const [OLD, NEW] = SECRETS.map(({ secret }) => secret);

/** A signature as a provider makes it. */
function sign(body: string, { secret = NEW ?? "", atS = Math.floor(Date.now() / 1_000) } = {}): string {
  return `t=${atS},v1=${createHmac("sha256", secret).update(`${atS}.${body}`).digest("hex")}`;
}

async function report(body: unknown, options: { source?: string; headers?: Record<string, string> } = {}) {
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${api.baseUrl}/callbacks/${options.source ?? "bank"}`, {
    method: "POST",
    headers: { "content-type": "application/json", "holdpoint-signature": sign(sent), ...options.headers },
    body: sent,
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

let refunds = 0;

/** A run that waits for its refund to settle. */
async function aPendingRefund() {
  refunds += 1;
  const externalRef = `re_${refunds}`;
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const callId = await callForRefund(api.store, run.id, owner);
  const attemptId = await startRefund(api.store, run.id, { ...owner, callId });
  await commit(api.store, run.id, {
    workerId: owner.workerId,
    epoch: owner.epoch,
    stepSeq: 2,
    steps: [{ kind: "effect_pending", callId, output: { refund: externalRef } }],
    settles: [{ attemptId, outcome: "succeeded", settledBy: `worker:${owner.workerId}`, externalRef }],
    start: null,
  });
  const event = {
    type: "Held",
    hold: {
      kind: "dependency",
      waitingFor: { kind: "callback", principal: "payments", subject: callId, reason: "settlement_pending" },
      deadline: { inMs: 60_000 },
      onDeadline: "continue",
    },
  } as const;
  await move(api.store, { runId: run.id, workerId: owner.workerId, event });
  return { runId: run.id, externalRef };
}

describe("a report from outside", () => {
  test("wakes the run that waits for it, once for each event", async () => {
    const { runId, externalRef } = await aPendingRefund();
    const waiting = await olga().showRun({ runId });
    expect(waiting.sentence).toBe(
      `Waits for payments to settle send_refund since ${waiting.since}, until ${waiting.waitDeadline}; then the other side is asked.`,
    );
    const event = { id: "evt_1", externalRef, status: "settled", at: "2026-11-30T12:00:00Z" };
    expect(await report(event)).toMatchObject({ status: 200, body: { duplicate: false } });
    expect(await olga().showRun({ runId })).toMatchObject({ status: "queued" });
    expect(await report(event)).toMatchObject({ status: 200, body: { duplicate: true } });
    const { items } = await olga().showTimeline({ runId });
    expect(items.filter(({ kind }) => kind === "callback")).toMatchObject([
      { source: "bank", eventId: "evt_1", tool: "send_refund", status: "settled" },
    ]);
    expect(items).toContainEqual(
      expect.objectContaining({ event: "FactArrived", actor: { kind: "provider", id: "bank" } }),
    );
  });

  test("may name the effect by the operation's id", async () => {
    const { runId } = await aPendingRefund();
    const [call] = (await olga().listCalls({ runId })).items;
    const event = { id: "evt_2", operationId: call?.operationId, status: "settled" };
    expect(await report(event)).toMatchObject({ status: 200, body: { duplicate: false } });
    expect(await olga().showRun({ runId })).toMatchObject({ status: "queued" });
  });

  test("of what nobody sent is not found, so that it is sent again", async () => {
    const event = { id: "evt_3", externalRef: "re_of_nobody", status: "settled" };
    expect(await report(event)).toMatchObject({ status: 404, body: { code: "not_found" } });
  });
});

describe("a signature", () => {
  const event = (externalRef: string, id: string) => JSON.stringify({ id, externalRef, status: "pending" });

  test("is taken under either secret of a source that changes them", async () => {
    const { externalRef } = await aPendingRefund();
    for (const [index, secret] of [OLD, NEW].entries()) {
      const body = event(externalRef, `evt_rotation_${index}`);
      const headers = { "holdpoint-signature": sign(body, { secret: secret ?? "" }) };
      expect(await report(body, { headers })).toMatchObject({ status: 200 });
    }
  });

  test("that is missing, wrong, old or another source's gets one and the same answer, and nothing happens", async () => {
    const { runId, externalRef } = await aPendingRefund();
    const before = await olga().showRun({ runId });
    const body = JSON.stringify({ id: "evt_forged", externalRef, status: "settled" });
    const foreign = JSON.stringify({ id: "evt_forged", externalRef: "re_of_nobody", status: "settled" });
    const now = Math.floor(Date.now() / 1_000);
    const answers = await Promise.all([
      report(body, { headers: { "holdpoint-signature": "" } }),
      report(body, { headers: { "holdpoint-signature": sign(foreign) } }),
      report(body, { headers: { "holdpoint-signature": sign(body, { atS: now - 400 }) } }),
      report(body, { headers: { "holdpoint-signature": sign(body, { atS: now + 400 }) } }),
      report(body, { headers: { "holdpoint-signature": sign(body, { secret: "a-secret-of-nobody" }) } }),
      report(body, {
        headers: { "holdpoint-signature": sign(body), authorization: "Bearer olga-token" },
        source: "post",
      }),
      report(body, { source: "nobody" }),
      report(foreign, { headers: { "holdpoint-signature": "" } }),
      report("{", { headers: { "holdpoint-signature": "" } }),
    ]);
    const [first] = answers;
    for (const { status, body: problem, headers } of answers) {
      expect(status).toBe(401);
      expect({ ...Problem.parse(problem), requestId: "" }).toEqual({ ...Problem.parse(first?.body), requestId: "" });
      expect(headers.get("www-authenticate")).toBeNull();
    }
    expect(await olga().showRun({ runId })).toEqual(before);
  });

  test("is over the bytes as they were sent, whatever they say", async () => {
    const { externalRef } = await aPendingRefund();
    const spaced = `{ "id" : "evt_spaced",\n"externalRef":"${externalRef}", "status":"pending" }`;
    expect(await report(spaced)).toMatchObject({ status: 200 });
    const headers = { "holdpoint-signature": sign(JSON.stringify(JSON.parse(spaced))) };
    expect(await report(spaced, { headers })).toMatchObject({ status: 401 });
  });
});

describe("a signed body", () => {
  test.each([
    [{ id: "evt_4", status: "settled" }, "body"],
    [{ id: "evt_4", externalRef: "re_1", operationId: "op_1", status: "settled" }, "body"],
    [{ id: "evt_4", externalRef: "re_1", status: "done" }, "body.status"],
    [{ id: "evt 4", externalRef: "re_1", status: "settled" }, "body.id"],
    [{ id: "evt_4", externalRef: "re\u00001", status: "settled" }, "body.externalRef"],
    [{ id: "evt_4", externalRef: "re_1", status: "settled", amount: 1 }, "body"],
    [[], "body"],
  ])("%j is told what is wrong with it", async (body, path) => {
    const { status, body: problem } = await report(body);
    expect(status).toBe(400);
    expect(problem).toMatchObject({ code: "invalid_request", mistakes: [{ path }] });
  });

  test("that is no JSON, too large, or of another type has its own code", async () => {
    expect(await report("{")).toMatchObject({ status: 400, body: { code: "malformed_body" } });
    const large = JSON.stringify({ id: "evt_5", externalRef: "x".repeat(140_000), status: "settled" });
    expect(await report(large)).toMatchObject({ status: 413, body: { code: "body_too_large" } });
    const headers = { "content-type": "text/plain" };
    expect(await report("{}", { headers })).toMatchObject({ status: 415, body: { code: "unsupported_media_type" } });
  });
});

test("neither secrets nor what was reported reach the log", () => {
  const log = api.logged.join("");
  expect(log).toContain("/callbacks/:source");
  expect(log).not.toMatch(/bank-secret|post-secret|evt_|v1=/);
});
