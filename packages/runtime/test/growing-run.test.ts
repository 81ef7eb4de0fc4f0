import { type Approval, type Call, type RunHistory, runHistory, type Step, type StepBody } from "@holdpoint/core";
import type { CommitResult, LoadedRun, StepCommit } from "@holdpoint/store";
import { decide, defineWorkflow } from "@holdpoint/workflow";
import type { ModelMessage } from "ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { afterCommit, type OwnedView } from "../src/after-commit.ts";
import { openCompletedCalls } from "../src/completed-calls.ts";
import { growing } from "../src/growing.ts";
import { plainPrompt } from "../src/plain-prompt.ts";
import { buildPrompt, openConversation, type Told } from "../src/prompt.ts";
import { openWorkflowHistory } from "../src/workflow-history.ts";
import { aCall, steps } from "./parts.ts";

const USAGE = { inputTokens: 1, outputTokens: 1 };
const MESSAGES = [{ seq: 1, role: "user", text: "Refund 4411" }] as const;
const NO_HISTORY = runHistory([], []);

/** The history with these bodies behind it. */
function append(history: RunHistory, bodies: readonly StepBody[], calls: readonly Call[] = []): RunHistory {
  const { length } = history.known.steps;
  const added = bodies.map((body, index): Step => ({ seq: length + index + 1, atMs: 0, body }));
  return history.append({ steps: added, calls });
}

function aReply(calls: readonly Call[]): StepBody {
  const content = calls.map(({ toolCallId, tool }) => ({ type: "tool-call", toolCallId, toolName: tool, input: {} }));
  const message = { role: "assistant", content: content.length === 0 ? "well" : content };
  return {
    kind: "model_reply",
    turn: 1,
    message,
    text: "",
    callIds: calls.map(({ id }) => id),
    outcome: null,
    usage: USAGE,
  };
}

function aResult(callId: string, output: Extract<StepBody, { kind: "tool_result" }>["output"] = "done"): StepBody {
  return { kind: "tool_result", callId, result: "succeeded", output };
}

/** What a person has made of a call's arguments. */
function anEdit(callId: string, argsHash: string): Approval {
  // Only what a conversation reads of it.
  return { callId, argsHash, editedBy: "mona", args: { to: argsHash } } as unknown as Approval;
}

function toldOf(history: RunHistory, approvals: readonly Approval[] = []): Told {
  return { messages: MESSAGES, approvals, history };
}

function fromScratch({ history, approvals }: Told) {
  const { steps: rows, calls } = history.known;
  return buildPrompt({ messages: MESSAGES, steps: rows, calls, approvals });
}

interface Turn {
  readonly calls: number;
  readonly isReversed: boolean;
  readonly says: "nothing" | "message" | "retry" | "second result";
  readonly edits: boolean;
  readonly isAsked: boolean;
}

/** A run after one more turn, and what has come behind it. */
function afterTurn({ history, approvals }: Told, turn: Turn, index: number): Told {
  const calls = Array.from({ length: turn.calls }, (_, place) =>
    aCall({ id: `${index}/${place}`, toolCallId: `t${place}`, turn: index + 1, ordinal: place }),
  );
  const ended = turn.isReversed ? calls.toReversed() : calls;
  const first = history.known.calls[0] ?? calls[0];
  const said: Readonly<Record<Turn["says"], readonly StepBody[]>> = {
    nothing: [],
    message: [{ kind: "message", from: "ann", text: "Hurry" }],
    retry: [{ kind: "operator", choice: "retry", callId: null }],
    "second result": first === undefined ? [] : [aResult(first.id, `${index}`)],
  };
  const grown = append(history, [aReply(calls), ...ended.map(({ id }) => aResult(id)), ...said[turn.says]], calls);
  const edit = turn.edits && first !== undefined ? [anEdit(first.id, `hash_${index}`)] : [];
  return toldOf(grown, [...approvals, ...edit]);
}

describe("a conversation", () => {
  const turn: fc.Arbitrary<Turn> = fc.record({
    calls: fc.nat(3),
    isReversed: fc.boolean(),
    says: fc.constantFrom("nothing", "message", "retry", "second result"),
    edits: fc.constantFrom(false, false, true),
    isAsked: fc.boolean(),
  });

  test("that was told as it grew is the one that is told at once", () => {
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 8 }), (turns) => {
        const conversation = openConversation();
        let told = toldOf(NO_HISTORY);
        for (const [index, each] of turns.entries()) {
          told = afterTurn(told, each, index);
          const isAsked = each.isAsked || index === turns.length - 1;
          if (isAsked) expect(conversation.messages(told)).toEqual(fromScratch(told));
        }
      }),
    );
  });

  test("says with the same words again what it has said", () => {
    const conversation = openConversation();
    const calls = [aCall({ id: "a" }), aCall({ id: "b", toolCallId: "t2" })];
    const first = append(NO_HISTORY, [aReply(calls), aResult("b"), aResult("a")], calls);
    const said = conversation.messages(toldOf(first));
    const before = [...said];
    const after = conversation.messages(
      toldOf(append(first, [aReply([]), { kind: "message", from: "alice", text: "And?" }])),
    );
    expect(after).toBe(said);
    expect(after).toHaveLength(before.length + 2);
    expect(before.every((message, index) => message === after[index])).toBe(true);
  });

  test("is worked out message by message, and what failed is tried again", () => {
    const seen: number[] = [];
    let fails = true;
    const count = growing(
      () => ({ letters: 0 }),
      (made, messages, place) => {
        seen.push(place);
        if (place === 1 && fails) throw new RangeError("not yet");
        made.letters += String(messages[place]?.content).length;
      },
    );
    const messages: ModelMessage[] = [
      { role: "user", content: "ab" },
      { role: "user", content: "cde" },
    ];
    expect(() => count(messages)).toThrow("not yet");
    fails = false;
    expect(count(messages).letters).toBe(5);
    messages.push({ role: "user", content: "f" });
    expect(count(messages).letters).toBe(6);
    expect(seen).toEqual([0, 1, 1, 2]);
    expect(count([...messages]).letters).toBe(6);
  });

  test("is made anew for each request: what a middleware adds to one is not in the next", () => {
    const messages: ModelMessage[] = [{ role: "assistant", content: [{ type: "text", text: "Hello" }] }];
    const [, message] = plainPrompt("", messages) ?? [];
    if (message === undefined || typeof message.content === "string") throw new Error("there is no message");
    message.providerOptions = { provider: { cache: true } };
    message.content.pop();
    const [, again] = plainPrompt("", messages) ?? [];
    expect(again).toEqual({ role: "assistant", content: [{ type: "text", text: "Hello" }] });
  });
});

test("the results of calls are given away as one's own: nobody else sees what is done to them", () => {
  const completed = openCompletedCalls();
  const calls = [aCall({ id: "a" }), aCall({ id: "b", tool: "pay" })];
  const first = append(NO_HISTORY, [aReply(calls), aResult("a", { n: 1 }), aResult("nobody")], calls);
  const before = completed.of(first);
  expect(before).toEqual([{ tool: "find_order", result: "succeeded", output: { n: 1 } }]);
  const after = completed.of(append(first, [aResult("b")]));
  expect(after.map(({ tool }) => tool)).toEqual(["find_order", "pay"]);
  Object.assign(before[0]?.output ?? {}, { n: 2 });
  expect(completed.of(first)[0]?.output).toEqual({ n: 1 });
  expect(after[0]?.output).toEqual({ n: 1 });
  expect(before).toHaveLength(1);
});

describe("what a graph decides from", () => {
  const agent = { name: "clerk", version: "1" };
  const one = { kind: "agent", agent, goal: () => "work", output: z.json() } as const;
  const workflow = defineWorkflow({
    name: "two",
    version: "1",
    input: z.json(),
    nodes: { one, other: { ...one, after: ["one"] } },
  });
  // Only what a history is read from.
  const viewOf = (history: RunHistory, earlier: OwnedView["earlier"] = []): OwnedView =>
    ({ run: { input: null }, history, earlier }) as unknown as OwnedView;
  const node = (id: string, name: string): StepBody => ({
    kind: "nodes_started",
    turn: 1,
    callIds: [id],
    nodes: [{ id, node: name, round: 1, item: null, settled: null }],
  });
  const ids = fc.constantFrom("c1", "c2", "c3", "@result", "@other/1");
  const body: fc.Arbitrary<StepBody> = fc.oneof(
    fc.tuple(ids, fc.constantFrom("one", "other")).map(([id, name]) => node(id, name)),
    fc.tuple(ids, fc.constantFrom("succeeded", "failed", "skipped" as const)).map(
      ([callId, result]): StepBody => ({
        kind: "tool_result",
        callId,
        result,
        output: { children: [{ result: 1, reason: "no" }] },
      }),
    ),
    fc
      .tuple(ids, fc.constantFrom("retry", "skip" as const))
      .map(([callId, choice]): StepBody => ({ kind: "operator", choice, callId })),
    fc.constant<StepBody>({ kind: "operator", choice: "retry", callId: null }),
  );

  test("is the same read step by step and at once", () => {
    fc.assert(
      fc.property(fc.array(body, { maxLength: 12 }), fc.array(body, { maxLength: 6 }), (before, bodies) => {
        const earlier = before.length === 0 ? [] : [steps(...before)];
        const growing = openWorkflowHistory(workflow);
        let history = NO_HISTORY;
        for (const each of bodies) {
          history = append(history, [each]);
          const [grown, atOnce] = [growing, openWorkflowHistory(workflow)].map((reader) =>
            reader.of(viewOf(history, earlier), new Map()),
          );
          if (grown === undefined || atOnce === undefined) throw new Error("there are two");
          expect([grown.executions, grown.choices]).toEqual([atOnce.executions, atOnce.choices]);
          expect(decide(workflow, grown)).toEqual(decide(workflow, atOnce));
        }
      }),
    );
  });

  test("is read anew where the rows were loaded again", () => {
    const growing = openWorkflowHistory(workflow);
    const history = append(NO_HISTORY, [node("c1", "one")]);
    const loaded = runHistory(history.known.steps, []);
    const before = growing.of(viewOf(history), new Map());
    const after = growing.of(viewOf(append(loaded, [aResult("c1")])), new Map());
    expect(after).toMatchObject({ executions: [{ callId: "c1", state: "done" }] });
    expect(before).not.toBe(after);
  });
});

describe("afterCommit", () => {
  const view = {
    history: append(NO_HISTORY, [aReply([])]),
    unread: [{ id: "f1" }, { id: "f2" }],
    approvals: [
      { id: "a1", state: "approved" },
      { id: "a2", state: "approved" },
    ],
    children: [],
    openAttempts: [],
    run: { stepSeq: 1, state: { openAttempts: 0, liveChildren: 0, takeovers: 1 } },
  } as unknown as OwnedView;
  const taken = { result: "taken", stepSeq: 2, nowMs: 7, started: false } as unknown as Extract<
    CommitResult,
    { result: "taken" }
  >;
  const commit = (patch: Partial<StepCommit> = {}): StepCommit =>
    ({ steps: [{ kind: "no_answer" }], start: null, ...patch }) as unknown as StepCommit;

  test("adds the steps behind those that are known, and copies nothing that stays", () => {
    const after = afterCommit(view, commit(), taken);
    expect(after.history.known.steps.at(-1)).toEqual({ seq: 2, atMs: 7, body: { kind: "no_answer" } });
    const same = (each: Pick<LoadedRun, "unread" | "approvals" | "children">) => [
      each.unread,
      each.approvals,
      each.children,
    ];
    expect(same(after).every((list, index) => list === same(view)[index])).toBe(true);
    expect(view.history.known.steps).toHaveLength(1);
  });

  test("takes away what was read, and marks what was spent", () => {
    const after = afterCommit(view, commit({ readFacts: ["f1"], usedApproval: "a2" }), taken);
    expect(after).toMatchObject({ unread: [{ id: "f2" }], approvals: [{ state: "approved" }, { state: "spent" }] });
  });
});
