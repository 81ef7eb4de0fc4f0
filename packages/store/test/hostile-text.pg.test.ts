import { type Call, canonicalJson, type JsonValue, type StepBody, storable, storableText } from "@holdpoint/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commitSteps, createSession, loadRun, submitRun } from "../src/index.ts";
import { ALICE, aCall, aCommit, aReply, aRun, aWorker, claim } from "./a-run.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

/** Text that has broken such systems before. */
const HOSTILE = [
  "caf\u0000e",
  "\u0000",
  "half an emoji \ud83d",
  "\ude00 the other half",
  "\udc00\ud800",
  "\\u0000 is only written, and so is \\ud800",
  "'; drop table runs; --",
  "$1 %s %I \\x00 E'\\\\' $$ $tag$",
  '"}]\\"\\',
  "line\u2028feed\u2029\u0085\u000b\u001b[2J",
  "\ufeffbom \uffff \u202eright to left",
  "👩‍👩‍👧‍👦 é e\u0301 ﷽",
  " \t\n leading and trailing \r\n",
  "__proto__",
  "x".repeat(70_000),
] as const;

const NUMBERS = [0, -0, 0.1, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER, -1 / 3] as const;
const DIGITS = ["9007199254740993", "1533947986218845197", "-18446744073709551616", "0.10", "30.00"] as const;

/**
 * A run with one turn that carries the value wherever text from outside is stored, as it is after a reload. Arguments
 * are frozen in their safe form, since they are hashed before they are stored.
 */
async function stored(value: JsonValue, text: string) {
  const run = await aRun(bench.store, { goal: text });
  const claimed = await claim(bench.store, run.id, await aWorker(bench.store));
  const call: Call = aCall({
    args: storable(value),
    service: "find",
    throttledForMs: 1,
    toolCallId: text,
    tool: "find",
    effect: { kind: "read" },
  });
  const said: StepBody = {
    ...aReply([call]),
    text,
    message: { role: "assistant", content: [{ text, value }] },
  } as StepBody;
  const result: StepBody = { kind: "tool_result", callId: call.id, result: "succeeded", output: value };
  const artifact = { sha256: call.id, sizeBytes: 1, mediaType: "text/plain", content: text };
  const [taken] = await commitSteps(bench.store, [
    aCommit(claimed, {
      steps: [said, result],
      calls: [call],
      messages: [{ role: "assistant", author: "desk", text }],
      artifacts: [artifact],
      currentStep: text.slice(0, 100),
    }),
  ]);
  expect(taken).toMatchObject({ result: "taken" });
  const loaded = await loadRun(bench.store, run.id);
  if (loaded === null) throw new Error("the run is gone");
  const [kept] = await bench.sql("select content from holdpoint.artifacts where sha256 = $1", [call.id]);
  return { loaded, call, artifact: kept?.content, bodies: loaded.steps.map(({ body }) => body) };
}

async function expectKept(value: JsonValue, text: string): Promise<void> {
  const { loaded, call, artifact, bodies } = await stored(value, text);
  const safe = storable(value);
  const safeText = storableText(text);
  const [reply, result] = bodies;
  expect(loaded.run.goal).toBe(safeText);
  expect(loaded.messages.map((message) => message.text)).toEqual([safeText]);
  expect(artifact).toBe(safeText);
  expect(reply).toMatchObject({ text: safeText, message: { content: [{ text: safeText }] } });
  expect(loaded.calls).toMatchObject([{ id: call.id, toolCallId: safeText }]);
  // What was hashed before it was stored has the same hash after a reload, digit for digit.
  expect(canonicalJson(loaded.calls[0]?.args ?? null)).toBe(canonicalJson(safe));
  expect(canonicalJson(result?.kind === "tool_result" ? result.output : null)).toBe(canonicalJson(safe));
  const content =
    reply?.kind === "model_reply" ? (reply.message.content as readonly { readonly value: JsonValue }[]) : [];
  expect(canonicalJson(content[0]?.value ?? null)).toBe(canonicalJson(safe));
}

describe("text and values from outside", () => {
  test.each(HOSTILE)("come back from every table as they are or in their safe form: %j", async (text) => {
    await expectKept({ text, list: [text, { deep: text }], [text.slice(0, 100)]: text }, text);
  });

  test("come back digit for digit: numbers, and money and ids as text", async () => {
    await expectKept({ numbers: [...NUMBERS], digits: [...DIGITS] }, "9007199254740993");
    const { loaded } = await stored({ id: "1533947986218845197", amount: "9007199254740993" }, "x");
    expect(loaded.calls[0]?.args).toEqual({ id: "1533947986218845197", amount: "9007199254740993" });
  });

  test("lose no property where keys become equal", async () => {
    const { bodies } = await stored({ "a\u0000": 1, "a\ud800": 2, "a\ufffd": 3 }, "x");
    const output = bodies[1]?.kind === "tool_result" ? bodies[1].output : null;
    expect(output).toEqual({ "a\ufffd\ufffd": 1, "a\ufffd\ufffd\ufffd": 2, "a\ufffd": 3 });
  });

  test("come back whatever they are, with the digest that they had", { timeout: 120_000 }, async () => {
    const unit = fc.oneof(
      fc.constantFrom(..."\u0000\ud800\udc00\ufffd\\\"'a"),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    );
    const text = fc.array(unit, { maxLength: 12 }).map((units) => units.join(""));
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        text,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value")),
        fc.dictionary(text, tie("value")),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(value, text, (given, words) => expectKept({ given }, words)),
      { numRuns: 60 },
    );
  });

  test("keep nobody from storing beside them: one batch, hostile and plain", async () => {
    const worker = await aWorker(bench.store);
    const runs = await Promise.all(HOSTILE.map(() => aRun(bench.store)));
    const claims = await Promise.all(runs.map((run) => claim(bench.store, run.id, worker)));
    const commits = claims.map((claimed, index) =>
      aCommit(claimed, { steps: [{ kind: "message", from: "alice", text: HOSTILE[index] ?? "" }] }),
    );
    const results = await commitSteps(bench.store, commits);
    expect(results.map((each) => (each instanceof Error ? each.message : each.result))).toEqual(
      HOSTILE.map(() => "taken"),
    );
  });

  test("name a session's message and a goal as well", async () => {
    const session = await createSession(bench.store, ALICE.id);
    const agent = { name: "refunds", version: "1" };
    const goal = "caf\u0000e \ud83d";
    const submitted = await submitRun(bench.store, { sessionId: session.id, agent, goal, actor: ALICE });
    expect(submitted).toMatchObject({ result: "submitted", run: { goal: "caf\ufffde \ufffd" } });
  });
});
