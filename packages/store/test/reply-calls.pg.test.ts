import type { Call, StepBody, Verdict } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { commitSteps, hashArgs, newId } from "../src/index.ts";
import { findApproval, findApprovalHistory, findTimeline, listCalls } from "../src/read/index.ts";
import { aCall, aCommit, aReply, aStart, callRow } from "./a-run.ts";
import { aClaimedRun, aGatedCall, anAskingRun, aResult, reload, took } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

/** A read as an agent that says nothing else about its tool makes it. */
function aRead(overrides: Partial<Call> = {}): Call {
  const { tool = "find_order", args = { order: "4411" } } = overrides;
  return aCall({
    tool,
    args,
    argsHash: hashArgs(tool, args),
    effect: { kind: "read" },
    timeoutMs: 30_000,
    retries: 1,
    throttledForMs: 172_800_000,
    service: `tool:${tool}`,
    ...overrides,
  });
}

const DENIED: Verdict = { kind: "denied", rule: "never", message: "Not that one." };
const INVALID: Verdict = { kind: "invalid", message: "There is no tool fly." };

/** One of each kind that a reply may have without a row, of every shape. */
const READS: readonly Partial<Call>[] = [
  {},
  { args: { z: [1, 1e21, -0.5, null, true], a: { "ä\u2028\u007f": 'quo"te\\n\n' } } },
  { tool: "Füße_\u{1f600}", service: "shop" },
  { operationId: "op_of_its_own" },
  { timeoutMs: 1, throttledForMs: 86_400_000 },
  { timeoutMs: 29_999 },
  { throttledForMs: 0, retries: 7 },
  { verdict: DENIED },
  { verdict: INVALID, args: {}, tool: "fly", timeoutMs: 1, retries: 0, throttledForMs: 0, service: "" },
  { toolCallId: "call_\u{1f600}" },
];

/** What the database has in rows, and in all. */
async function stored(runId: string) {
  const rows = await bench.sql<{ id: string }>(
    "select id from holdpoint.calls where run_id = $1 order by turn, ordinal",
    [runId],
  );
  const all = await bench.sql<Readonly<Record<string, unknown>>>(
    "select * from holdpoint.all_calls where run_id = $1 order by turn, ordinal",
    [runId],
  );
  return { rows: rows.map(({ id }) => id), all };
}

/** As the driver reads it. */
const asColumns = (runId: string, call: Call) => ({
  run_id: runId,
  ...callRow(call),
  throttled_for_ms: `${call.throttledForMs}`,
});

describe("a reply's reads", () => {
  test("have no rows, and are loaded and listed as they were made", async () => {
    const calls = READS.map((each, ordinal) => aRead({ ordinal, ...each }));
    const { run } = await took(bench.store, await aClaimedRun(bench.store), { steps: [aReply(calls)], calls });
    const loaded = await reload(bench.store, run.id);
    expect(loaded.calls).toEqual(calls);
    expect(loaded.steps).toEqual([{ seq: 1, atMs: expect.any(Number), body: aReply(calls) }]);
    const { rows, all } = await stored(run.id);
    expect(rows).toEqual([]);
    expect(all).toMatchObject(calls.map((call) => asColumns(run.id, call)));
  });

  test("stand beside calls with rows, each at its place", async () => {
    const calls = [
      aRead(),
      aCall({ ordinal: 1 }),
      aRead({ ordinal: 2, verdict: DENIED }),
      aCall({ ordinal: 3, verdict: DENIED }),
      aGatedCall({ ordinal: 4, effect: { kind: "read" } }),
      aCall({ ordinal: 5, effect: { kind: "timer" } }),
      aRead({ ordinal: 6 }),
    ];
    const { run, calls: loaded } = await took(bench.store, await aClaimedRun(bench.store), {
      steps: [aReply(calls)],
      calls,
    });
    expect(loaded).toEqual(calls);
    const { rows, all } = await stored(run.id);
    expect(rows).toEqual([1, 3, 4, 5].map((place) => calls[place]?.id));
    expect(all).toMatchObject(calls.map((call) => asColumns(run.id, call)));
  });

  test("of a graph's nodes keep the places of their nodes, and other turns their own", async () => {
    const first = aRead({ turn: 1 });
    const [second, third] = [aRead({ turn: 2, ordinal: 1 }), aRead({ turn: 2, ordinal: 4 })];
    const node = (id: string) => ({ id, node: "look", round: 1, item: null, settled: null });
    const started: StepBody = {
      kind: "nodes_started",
      turn: 2,
      callIds: [second.id, third.id],
      nodes: [newId(), second.id, newId(), newId(), third.id].map(node),
    };
    const asked = await took(bench.store, await aClaimedRun(bench.store), { steps: [aReply([first])], calls: [first] });
    const { run, calls } = await took(bench.store, asked, {
      steps: [aResult(first), started],
      calls: [second, third],
    });
    expect(calls).toEqual([first, second, third]);
    const { rows, all } = await stored(run.id);
    expect(rows).toEqual([]);
    expect(all).toMatchObject([first, second, third].map((call) => asColumns(run.id, call)));
  });

  test("that no step of the commit asks for, or one of another turn, have rows", async () => {
    const [unasked, other] = [aRead({ ordinal: 3 }), aRead({ turn: 2 })];
    const { run, calls } = await took(bench.store, await aClaimedRun(bench.store), {
      steps: [aReply([other])],
      calls: [unasked, other],
    });
    expect(calls).toEqual([unasked, other]);
    expect((await stored(run.id)).rows).toEqual([unasked.id, other.id]);
  });

  test("come with the results and starts of other runs in one statement, each to its own run", async () => {
    const refund = aCall();
    const [starting, asking, told] = [
      await took(bench.store, await aClaimedRun(bench.store), { steps: [aReply([refund])], calls: [refund] }),
      await aClaimedRun(bench.store),
      await aClaimedRun(bench.store),
    ];
    const read = aRead();
    const start = aStart(refund);
    const message: StepBody = { kind: "message", from: "alice", text: "and hurry" };
    const results = await commitSteps(bench.store, [
      aCommit(starting, { start }),
      aCommit(asking, { steps: [message, aReply([read])], calls: [read] }),
      aCommit(told, { steps: [message] }),
    ]);
    expect(results).toMatchObject([{ started: true }, { stepSeq: 2 }, { stepSeq: 1 }]);
    const loaded = await Promise.all([starting, asking, told].map(({ run }) => reload(bench.store, run.id)));
    expect(loaded.map(({ calls }) => calls)).toEqual([[refund], [read], []]);
    expect(loaded.map(({ openAttempts }) => openAttempts.length)).toEqual([1, 0, 0]);
  });
});

test("what has rows and what has none is listed in pages, and named in the timeline", async () => {
  const calls = [aRead(), aCall({ ordinal: 1 }), aRead({ ordinal: 2, tool: "find_customer" })];
  const asked = await took(bench.store, await aClaimedRun(bench.store), { steps: [aReply(calls)], calls });
  const { run } = await took(bench.store, asked, { steps: calls.map((call) => aResult(call)) });
  const listed: string[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof listCalls>> = await listCalls(bench.store, run.id, { limit: 1, after });
    listed.push(...page.items.map(({ id, tool, effect, argsHash }) => [id, tool, effect, argsHash].join(" ")));
    after = page.next;
  } while (after !== null);
  expect(listed).toEqual(calls.map(({ id, tool, effect, argsHash }) => [id, tool, effect.kind, argsHash].join(" ")));
  const { items } = await findTimeline(bench.store, run.id, { limit: 50, after: null, payloads: false });
  const lines = items.flatMap((entry) => (entry.kind === "step" && entry.step === "tool_result" ? [entry.line] : []));
  expect(lines).toEqual(calls.map(({ tool }) => expect.stringContaining(tool)));
});

test("whoever is to approve a call sees an equal one that needed nobody's word", async () => {
  const [free, gated] = [aRead(), aRead({ ordinal: 1, verdict: aGatedCall().verdict })];
  const { request } = await anAskingRun(bench.store, { calls: [gated, free] });
  const view = await findApproval(bench.store, request.id);
  if (view === null) throw new Error("there must be a request");
  const { equalCalls } = await findApprovalHistory(bench.store, view);
  expect(equalCalls).toMatchObject([{ callId: free.id, result: null }]);
});
