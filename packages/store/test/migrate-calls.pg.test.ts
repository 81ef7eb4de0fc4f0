import type { Call } from "@holdpoint/core";
import type pg from "pg";
import { expect, test } from "vitest";
import { findViolations, hashArgs, newId, openStore } from "../src/index.ts";
import { listCalls } from "../src/read/index.ts";
import { aCall, aReply, aWorker, callRow, claim } from "./a-run.ts";
import { aResult, endBy, took } from "./a-status.ts";
import { anOldDatabase, insertRow } from "./an-old-database.ts";

function aRead(overrides: Partial<Call> = {}): Call {
  const args = { order: "4411" };
  return aCall({ tool: "look", args, argsHash: hashArgs("look", args), effect: { kind: "read" }, ...overrides });
}

/** A run that was given back between its calls, as the version before wrote it: each call has a row. */
async function anOldRun(client: pg.Client, calls: readonly Call[]): Promise<string> {
  const [runId, sessionId] = [newId(), newId()];
  const at = new Date().toISOString();
  await insertRow(client, "agents", { name: "refunds", version: "1", tools: [], registered_at: at });
  await insertRow(client, "sessions", { id: sessionId, requester: "alice", message_seq: 0, created_at: at });
  await insertRow(client, "runs", {
    id: runId,
    session_id: sessionId,
    agent_name: "refunds",
    agent_version: "1",
    requester: "alice",
    submitted_by: "alice",
    goal: "refund",
    input_seq: 0,
    line: runId,
    status: "queued",
    queued_since: at,
    wait_deadline: new Date(Date.parse(at) + 3_600_000).toISOString(),
    version: 3,
    step_seq: 1,
    epoch: 1,
    checkpoint: { stepSeq: 1, turn: 1, openCalls: calls.length, lastCompleted: null, inputTokens: 10, outputTokens: 5 },
    created_at: at,
    updated_at: at,
  });
  const moves = [
    [null, "queued", "Submitted"],
    ["queued", "running", "Claimed"],
    ["running", "queued", "Released"],
  ] as const;
  for (const [index, [from, to, event]] of moves.entries()) {
    const who = { actor_kind: "worker", actor_id: "w", epoch: 1, at };
    await insertRow(client, "transitions", {
      run_id: runId,
      seq: index + 1,
      from_status: from,
      to_status: to,
      event,
      ...who,
    });
  }
  await insertRow(client, "steps", { run_id: runId, seq: 1, epoch: 1, kind: "model_reply", body: aReply(calls), at });
  for (const call of calls) await insertRow(client, "calls", { run_id: runId, at, ...callRow(call) });
  return runId;
}

test("reads that had rows of their own keep them, and the run goes on with reads that have none", async () => {
  await using old = await anOldDatabase("0011_calls_of_replies.sql");
  const before = [aRead({ operationId: "op_of_its_own" }), aRead({ ordinal: 1 })];
  const runId = await anOldRun(old.client, before);
  await old.migrateOn();
  await using store = openStore({ url: old.url });
  expect(await findViolations(store)).toEqual([]);
  const claimed = await claim(store, runId, await aWorker(store));
  expect(claimed.calls).toEqual(before);

  const after = [aRead({ turn: 2 }), aRead({ turn: 2, ordinal: 1 })];
  const steps = [...before.map((call) => aResult(call)), aReply(after, 2)];
  const asked = await took(store, claimed, { steps, calls: after });
  expect(asked.calls).toEqual([...before, ...after]);
  const { items } = await listCalls(store, runId, { limit: 10, after: null });
  expect(items.map(({ id }) => id)).toEqual([...before, ...after].map(({ id }) => id));
  const { rows } = await old.client.query("select id from holdpoint.calls order by ordinal");
  expect(rows).toEqual(before.map(({ id }) => ({ id })));
  await endBy(store, await took(store, asked, { steps: after.map((call) => aResult(call)) }));
  expect(await findViolations(store)).toEqual([]);
});
