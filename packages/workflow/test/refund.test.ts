import { describe, expect, test } from "vitest";
import { decide } from "../src/decide.ts";
import type { WorkStart } from "../src/decision.ts";
import { progressOf } from "../src/progress.ts";
import { play, proceed, type Result, settle, started } from "./player.ts";
import { refund } from "./workflows.ts";

const RESULTS: Record<string, Result> = {
  intake: { output: { amountCents: 4_200, reason: "broken" } },
  pay: { output: { refundId: "re_1" } },
  letter: { output: { text: "Dear customer" } },
  sign: { output: { decision: "answered", note: null, answer: { signature: "Ada" } } },
};

const byName = ({ node }: WorkStart): Result => RESULTS[node] ?? {};

describe("the refund workflow", () => {
  test("is executed one node at a time, each with what those before it brought", () => {
    let history = started({ orderId: "4411" });
    expect(decide(refund, history)).toEqual({
      do: "start",
      nodes: [
        {
          kind: "agent",
          node: "intake",
          round: 1,
          item: null,
          agent: { name: "intake", version: "1" },
          goal: "Find out what is wrong with order 4411",
          input: { goal: "Find out what is wrong with order 4411" },
          retries: null,
        },
      ],
    });

    history = proceed(refund, history);
    expect(decide(refund, history)).toEqual({ do: "wait" });

    history = settle(history, RESULTS.intake ?? {});
    // The gate has nothing to do outside: its verdict is stored with it, and is never judged again.
    expect(decide(refund, history)).toEqual({
      do: "start",
      nodes: [
        {
          kind: "gate",
          node: "policy",
          round: 1,
          item: null,
          input: null,
          settled: { state: "done", output: { pass: true, feedback: "4200 is above the limit of 50000" } },
        },
      ],
    });

    history = proceed(refund, history);
    expect(decide(refund, history)).toMatchObject({
      do: "start",
      nodes: [{ kind: "tool", node: "pay", tool: "refund", input: { orderId: "4411", amountCents: 4_200 } }],
    });
    expect(progressOf(refund, history)).toEqual({
      lastCompleted: "policy",
      next: ["pay"],
      open: [],
      held: [],
      done: 2,
      total: 6,
      inWords: "2 of 6 nodes done; last completed: policy; next: pay",
    });
  });

  test("ends with what its result makes of the nodes", () => {
    const { last, started: names } = play(refund, byName, started({ orderId: "4411" }));
    expect(names).toEqual(["intake", "policy", "pay", "letter", "quality", "sign"]);
    expect(last).toEqual({
      do: "end",
      outcome: { kind: "succeeded" },
      output: { letter: "Dear customer", signedBy: "Ada" },
    });
  });

  test("asks a person for the signature, and shows what is to be signed", () => {
    const shown = { letter: "Dear customer", refund: "re_1" };
    const asked: WorkStart[] = [];
    const work = (start: WorkStart) => {
      asked.push(start);
      return byName(start);
    };
    play(refund, work, started({ orderId: "4411" }));
    expect(asked.at(-1)).toEqual({
      kind: "human",
      node: "sign",
      round: 1,
      item: null,
      input: { question: "Send this letter?", shown },
      request: {
        question: "Send this letter?",
        shown,
        approvers: { roles: ["support_lead"], users: [] },
        deadlineMs: 3_600_000,
        onDeadline: "reject",
        fourEyes: true,
        asks: "answer",
        answerSchema: expect.objectContaining({
          type: "object",
          properties: { signature: { type: "string" } },
          required: ["signature"],
        }),
      },
    });
  });

  test("sends a letter back once, with the feedback and what it was before", () => {
    const goals: string[] = [];
    const { last, started: names } = play(
      refund,
      (start) => {
        if (start.node !== "letter" || start.kind !== "agent") return byName(start);
        goals.push(start.goal);
        return { output: { text: start.round === 1 ? "Hey" : "Dear customer" } };
      },
      started({ orderId: "4411" }),
    );
    expect(names).toEqual(["intake", "policy", "pay", "letter", "quality", "letter#2", "quality#2", "sign"]);
    expect(goals).toEqual(["Write to the customer", 'Write "Hey" again: be polite']);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("ends as blocked where its policy says no, and pays nothing", () => {
    const { last, started: names } = play(
      refund,
      () => ({ output: { amountCents: 60_000, reason: "broken" } }),
      started({ orderId: "4411" }),
    );
    expect(names).toEqual(["intake", "policy"]);
    expect(last).toEqual({
      do: "end",
      outcome: { kind: "blocked", step: "policy", reason: "60000 is above the limit of 50000" },
      output: null,
    });
  });

  test("never starts with an input that its schema does not take", () => {
    expect(decide(refund, started({ orderId: 4411 }))).toEqual({
      do: "end",
      outcome: { kind: "blocked", step: "input", reason: "orderId: Invalid input: expected string, received number" },
      output: null,
    });
  });

  test("is held where its history is another workflow's", () => {
    const other = { node: "other", round: 1, item: null, callId: "c1", message: null };
    const executions = [{ ...other, state: "done", result: "succeeded", output: null }] as const;
    expect(decide(refund, { ...started({ orderId: "4411" }), executions })).toEqual({
      do: "hold",
      reason: "graph_error",
      node: "other",
      round: 1,
      item: null,
      callId: "c1",
      message: '"other" is no node of refund 1: the history belongs to another definition',
    });
  });
});
