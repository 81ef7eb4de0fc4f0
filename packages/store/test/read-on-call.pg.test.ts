import { createTestDatabase, type TestDatabase } from "@holdpoint/testkit";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { commitSteps, newId, openStore, type Store } from "../src/index.ts";
import { findApproval, findTimeline, listFindings, listRuns } from "../src/read/index.ts";
import { aCall, aCommit, aReply, aRun, aStart, aWorker, claim } from "./a-run.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = openStore({ url: database.url });
});

afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const FIRST = { limit: 200, after: null };

/** A run with two attempts of one call, settled as is said; what is late came after that. */
async function aRunWithAttempts(outcomes: readonly [first: string, second: string | null], late: string) {
  const run = await aRun(store);
  const workerId = await aWorker(store);
  const claimed = await claim(store, run.id, workerId);
  const call = aCall();
  await commitSteps(store, [aCommit(claimed, { steps: [aReply([call])], calls: [call] })]);
  const start = aStart(call);
  await commitSteps(store, [aCommit({ ...claimed, run: { ...claimed.run, stepSeq: 1 } }, { start })]);
  const [first, second] = outcomes;
  await store.pool.query(
    `update holdpoint.attempts set outcome = $2, ended_at = clock_timestamp(), settled_by = 'test',
       late_at = clock_timestamp(), late_evidence = $3 where id = $1`,
    [start.attemptId, first, JSON.stringify({ outcome: late, externalRef: null, errorClass: null, errorCode: null })],
  );
  if (second !== null) {
    await store.pool.query(
      `insert into holdpoint.attempts (tenant_id, run_id, id, call_id, number, worker, epoch, started_at, deadline_at,
         ended_at, outcome)
       select tenant_id, run_id, $2, call_id, 2, worker, epoch, started_at, deadline_at, ended_at, $3
       from holdpoint.attempts where id = $1`,
      [start.attemptId, newId(), second],
    );
  }
  await store.pool.query("update holdpoint.runs set open_attempts = 0, external_ref = null where id = $1", [run.id]);
  return { runId: run.id, attemptId: start.attemptId, call };
}

describe("listFindings", () => {
  test.each([
    ["did_not_happen", null, "succeeded", true],
    ["did_not_happen", "succeeded", "succeeded", true],
    ["failed", null, "succeeded", true],
    ["not_established", null, "failed", true],
    ["succeeded", null, "failed", true],
    ["superseded", "failed", "succeeded", true],
    ["superseded", null, "succeeded", true],
    ["succeeded", null, "happened", false],
    ["failed", null, "did_not_happen", false],
    // Both attempts are one operation to the other side, and it is known to have acted.
    ["superseded", "succeeded", "succeeded", false],
  ])("an attempt taken for %s (another: %s) and late for %s: a finding %s", async (first, second, late, isFinding) => {
    const { attemptId } = await aRunWithAttempts([first, second], late);
    const { items } = await listFindings(store, FIRST);
    expect(items.some((finding) => finding.attemptId === attemptId)).toBe(isFinding);
  });
});

/** The nodes of the plan of what a read sends, where the planner takes an index wherever there is one. */
async function planOf(read: () => Promise<unknown>): Promise<readonly Node[]> {
  const sent = vi.spyOn(store.pool, "query");
  await read();
  const [[query, values]] = sent.mock.calls as unknown as [[{ text: string }, readonly unknown[]]];
  sent.mockRestore();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query("set enable_seqscan = off");
    const { rows } = await client.query(`explain (format json) ${query.text}`, [...values]);
    return nodesOf(rows[0]["QUERY PLAN"][0].Plan);
  } finally {
    await client.end();
  }
}

interface Node {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Node[];
}

function nodesOf(node: Node): readonly Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

describe("runs by what is known outside", () => {
  test.each([
    ["externalRef", ["attempts_external_ref", "calls_operation"]],
    ["operationId", ["calls_operation"]],
  ] as const)("%s is looked up by indexes alone", async (name, indexes) => {
    const nodes = await planOf(() => listRuns(store, { [name]: "re_1" }, FIRST));
    expect(nodes.filter((node) => node["Node Type"] === "Seq Scan")).toEqual([]);
    const used = nodes.map((node) => node["Index Name"] ?? "").filter((index) => /external_ref|operation/.test(index));
    // Partitions have indexes of their own names, made from the table's.
    for (const index of indexes) expect(used.join(" ")).toMatch(new RegExp(index.split("_").at(-1) ?? index));
  });
});

describe("findTimeline", () => {
  test("tells reminders, reports from outside and late evidence, page by page", async () => {
    const { runId, call, attemptId } = await aRunWithAttempts(["did_not_happen", null], "succeeded");
    const approvalId = newId();
    await store.pool.query(
      `insert into holdpoint.approvals (tenant_id, id, run_id, call_id, hold_seq, tool, args, args_hash, rule, roles,
         users, excluded, state, requested_at, deadline, on_deadline, valid_for_ms, terms, request, quorum)
       select tenant_id, $2, id, $3, 1, 'send_refund', '{"amount":"30.00"}', 'hash-1', 'over_limit', '{manager}', '{}',
         '{}', 'withdrawn', now(), now(), 'reject', 1, '{"decisions":[],"escalation":[]}', '{}', 1
       from holdpoint.runs where id = $1`,
      [runId, approvalId, call.id],
    );
    await store.pool.query(
      `insert into holdpoint.reminders (tenant_id, approval_id, stage, run_id, at)
       select tenant_id, $2, s, id, now() from holdpoint.runs, generate_series(1, 3) s where id = $1`,
      [runId, approvalId],
    );
    await store.pool.query(
      `insert into holdpoint.callbacks (tenant_id, source, event_id, run_id, call_id, status, received_at)
       select tenant_id, 'bank', e, id, $2, 'settled', now() from holdpoint.runs, unnest(array['evt/1', 'evt 2']) e
       where id = $1`,
      [runId, call.id],
    );
    const whole = await findTimeline(store, runId, { ...FIRST, payloads: false });
    const told = whole.items.filter(({ kind }) => kind !== "transition" && kind !== "step");
    expect(told).toHaveLength(6);
    expect(told).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: "reminder", approvalId, tool: "send_refund", stage: 3 }),
        expect.objectContaining({ kind: "callback", source: "bank", eventId: "evt/1", tool: "send_refund" }),
        expect.objectContaining({
          kind: "late_evidence",
          attemptId,
          settledAs: "did_not_happen",
          outcome: "succeeded",
        }),
      ]),
    );
    const pieces = [];
    for (let after: string | null = null, pages = 0; pages < 20; pages += 1) {
      const page = await findTimeline(store, runId, { limit: 1, after, payloads: false });
      pieces.push(...page.items);
      after = page.next;
      if (after === null) break;
    }
    expect(pieces).toEqual(whole.items);
    // Made before requests carried what they show: nothing was left out of their arguments then.
    expect(await findApproval(store, approvalId)).toMatchObject({
      shown: { redactedArgs: { amount: "30.00" }, modelReason: null, evidence: [], editSchema: null },
    });
  });
});
