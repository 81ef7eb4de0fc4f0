import type { JsonValue } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import type { History } from "../src/history.ts";
import { choose, play, proceed, settle, started } from "./player.ts";
import { agent, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.json() };
const isGood = (draft: string | null) => ({ pass: draft === "good", feedback: `not good: ${draft}` });
const bad = () => ({ output: "bad" });

describe("a feedback gate", () => {
  const workflow = defineWorkflow({
    ...base,
    nodes: {
      research: agent,
      draft: { ...agent, after: ["research"] },
      polish: { ...agent, after: ["draft"] },
      review: {
        kind: "gate",
        gate: "feedback",
        after: ["polish"],
        judge: (scope) => isGood(scope.output("polish")),
        rework: "draft",
      },
      publish: {
        kind: "agent",
        agent: worker,
        after: ["review"],
        goal: (scope) => `publish: ${scope.output("review")?.feedback ?? "nobody let it through"}`,
        output: text,
      },
    },
  });
  const rounds = [
    ["research", "draft", "polish", "review"],
    ["draft#2", "polish#2", "review#2"],
  ];

  test("runs the rework and all up to the gate again, and nothing before it", () => {
    const { started: names } = play(workflow, ({ round }) => ({ output: round === 1 ? "bad" : "good" }));
    expect(names).toEqual([...rounds.flat(), "publish"]);
  });

  test("asks a person after two rounds, and never goes round again by itself", () => {
    const { started: names, last } = play(workflow, bad);
    expect(names).toEqual(rounds.flat());
    expect(last).toEqual({
      do: "hold",
      reason: "rounds_exhausted",
      node: "review",
      round: 2,
      item: null,
      callId: "call-7",
      message: "not good: bad",
    });
  });

  test("goes one more round for each retry of an operator", () => {
    const first = play(workflow, bad);
    const second = play(workflow, bad, choose(first.history, "retry", first.last));
    expect(second.started.slice(7)).toEqual(["draft#3", "polish#3", "review#3"]);
    expect(second.last).toMatchObject({ do: "hold", reason: "rounds_exhausted", round: 3 });
    const third = play(workflow, () => ({ output: "good" }), choose(second.history, "retry", second.last));
    expect(third.started.slice(10)).toEqual(["draft#4", "polish#4", "review#4", "publish"]);
    expect(third.last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("lets the work through where an operator skips it, which is no success", () => {
    const first = play(workflow, bad);
    const skipped = choose(first.history, "skip", first.last);
    expect(decide(workflow, skipped)).toMatchObject({ nodes: [{ input: { goal: "publish: nobody let it through" } }] });
    const { started: names, last } = play(workflow, bad, skipped);
    expect(names.slice(7)).toEqual(["publish"]);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "partial", reason: "skipped: review" } });
  });

  test("that brings what is no verdict is held", () => {
    const { history } = play(workflow, bad);
    const executions = history.executions.map((each) => (each.node === "review" ? { ...each, output: "yes" } : each));
    const { round } = { round: 1 };
    const first = { ...history, executions: executions.slice(0, 4) };
    expect(decide(workflow, first)).toMatchObject({ do: "hold", reason: "invalid_node_output", node: "review", round });
  });
});

describe("work that is sent back", () => {
  test("knows nothing of a round in which it was skipped", () => {
    const goals: string[] = [];
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        draft: {
          kind: "agent",
          agent: worker,
          goal: (scope) => `${scope.round} ${scope.previous}`,
          output: text,
        },
        check: {
          kind: "gate",
          gate: "feedback",
          after: ["draft"],
          judge: (scope) => ({ pass: scope.output("draft") === "good", feedback: "bad" }),
          rework: "draft",
          rounds: 3,
        },
      },
    });
    const results = [{ output: "bad" }, { state: "skipped" }, { output: "good" }] as const;
    play(workflow, (start) => {
      if (start.kind === "agent") goals.push(start.goal);
      return results[start.round - 1] ?? {};
    });
    expect(goals).toEqual(["1 null", "2 bad", "3 bad"]);
    const skippedFirst = [{ state: "skipped" }, { output: "good" }] as const;
    play(workflow, (start) => {
      if (start.kind === "agent") goals.push(start.goal);
      return skippedFirst[start.round - 1] ?? {};
    });
    expect(goals.slice(3)).toEqual(["1 null", "2 null"]);
  });
});

describe("a gate around a gate", () => {
  const workflow = defineWorkflow({
    ...base,
    nodes: {
      draft: {
        kind: "agent",
        agent: worker,
        goal: ({ feedback, previous }) => `${feedback?.gate ?? "nobody"} ${feedback?.round ?? 0}: ${previous}`,
        output: text,
      },
      inner: {
        kind: "gate",
        gate: "feedback",
        after: ["draft"],
        judge: (scope) => ({ pass: scope.need("draft") !== "bad", feedback: "bad" }),
        rework: "draft",
      },
      outer: {
        kind: "gate",
        gate: "go_no_go",
        after: ["inner"],
        judge: (scope) => ({ pass: scope.need("draft") === "best", feedback: "not the best" }),
        rework: ["draft"],
      },
    },
  });

  test("begins to count anew in each round of the outer one", () => {
    const goals: string[] = [];
    const drafts = ["bad", "good", "bad", "best"];
    const { started: names, last } = play(workflow, (each) => {
      if (each.kind === "agent") goals.push(each.goal);
      return { output: drafts[each.round - 1] ?? "" };
    });
    expect(names).toEqual([
      ...["draft", "inner", "draft#2", "inner#2", "outer"],
      ...["draft#3", "inner#3", "draft#4", "inner#4", "outer#2"],
    ]);
    // The feedback is that of the gate which sent it back last.
    expect(goals).toEqual(["nobody 0: null", "inner 1: bad", "outer 1: good", "inner 3: bad"]);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("stops at two noes within one round of the outer one", () => {
    const drafts = ["bad", "good", "bad", "bad"];
    const { last } = play(workflow, ({ round }) => ({ output: drafts[round - 1] ?? "" }));
    expect(last).toMatchObject({ do: "hold", reason: "rounds_exhausted", node: "inner", round: 4 });
  });
});

describe("a go/no-go gate with nowhere to go back to", () => {
  const check = (otherwise: "hold" | "block") =>
    defineWorkflow({
      ...base,
      parallel: 2,
      nodes: {
        draft: agent,
        slow: agent,
        check: {
          kind: "gate",
          gate: "go_no_go",
          after: ["draft"],
          judge: (scope) => isGood(scope.output("draft")),
          otherwise,
        },
        publish: { ...agent, after: ["check"] },
      },
    });

  test("is held for a person, who has it judged again or skips it", () => {
    const held = play(check("hold"), bad);
    expect(held.last).toMatchObject({ do: "hold", reason: "no_go", node: "check", round: 1 });
    const history = settle(held.history, { output: "slow" });
    const again = play(check("hold"), bad, choose(history, "retry", held.last));
    expect(again.started.slice(held.started.length)).toEqual(["check"]);
    expect(again.last).toMatchObject({ do: "hold", reason: "no_go" });
    const skipped = play(check("hold"), bad, choose(again.history, "skip", again.last));
    expect(skipped.last).toMatchObject({ do: "end", outcome: { kind: "partial", reason: "skipped: check" } });
  });

  test("ends the workflow as blocked, once what is open has ended", () => {
    const workflow = check("block");
    const open = settle(proceed(workflow, started()), { output: "bad" });
    const judged = proceed(workflow, open);
    expect(decide(workflow, judged)).toEqual({ do: "wait" });
    expect(decide(workflow, settle(judged, { output: "x" }))).toEqual({
      do: "end",
      outcome: { kind: "blocked", step: "check", reason: "not good: bad" },
      output: null,
    });
  });
});

describe("an approval gate", () => {
  const ask = { question: () => "Publish?", approvers: { users: ["ada"] } };
  const approval = (no: { readonly rework: "draft"; readonly rounds: number } | { readonly otherwise: "block" }) =>
    defineWorkflow({
      ...base,
      nodes: {
        draft: {
          kind: "agent",
          agent: worker,
          goal: ({ feedback }) => feedback?.text ?? "first",
          output: text,
        },
        release: { kind: "gate", gate: "approval", after: ["draft"], ...ask, ...no },
        publish: { ...agent, after: ["release"] },
      },
    });
  const decided = (decision: string, note: string | null = null) => ({ output: { decision, note } });

  test("asks for a release, and goes on with it", () => {
    const starts: unknown[] = [];
    const { started: names } = play(approval({ otherwise: "block" }), (each) => {
      starts.push(each);
      return each.node === "release" ? decided("approved") : { output: "x" };
    });
    expect(names).toEqual(["draft", "release", "publish"]);
    expect(starts[1]).toMatchObject({
      kind: "approval",
      input: { question: "Publish?", shown: null },
      request: {
        asks: "release",
        answerSchema: null,
        approvers: { roles: [], users: ["ada"] },
        deadlineMs: null,
        onDeadline: "reject",
        fourEyes: true,
      },
    });
  });

  test("ends the workflow as blocked where it is rejected, or not decided in time", () => {
    const end = (decision: string, note: string | null) =>
      play(approval({ otherwise: "block" }), ({ node }) =>
        node === "release" ? decided(decision, note) : { output: "x" },
      ).last;
    const outcome = { kind: "blocked", step: "release" };
    expect(end("rejected", "too soon")).toMatchObject({ do: "end", outcome: { ...outcome, reason: "too soon" } });
    expect(end("expired", null)).toMatchObject({ do: "end", outcome: { ...outcome, reason: "expired" } });
  });

  test("sends the work back with the note of whoever rejects it, and counts that as a round", () => {
    const goals: string[] = [];
    const { started: names, last } = play(approval({ rework: "draft", rounds: 3 }), (each) => {
      if (each.kind === "agent") goals.push(each.goal);
      return each.node === "release" ? decided("rejected", `no ${each.round}`) : { output: "x" };
    });
    expect(names).toEqual(["draft", "release", "draft#2", "release#2", "draft#3", "release#3"]);
    expect(goals).toEqual(["first", "no 1", "no 2"]);
    expect(last).toMatchObject({ do: "hold", reason: "rounds_exhausted", message: "no 3" });
  });

  test("tells those after it what was said, and is held where that is no decision", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: { draft: agent, release: { kind: "gate", gate: "approval", after: ["draft"], ...ask } },
      result: (scope) => ({ ...scope.need("release") }),
    });
    const said = (output: JsonValue) =>
      play(workflow, ({ node }) => ({ output: node === "release" ? output : "x" })).last;
    expect(said({ decision: "approved", note: "go" })).toMatchObject({ output: { pass: true, feedback: "go" } });
    expect(said({ decision: "answered", answer: 1 })).toMatchObject({ do: "hold", reason: "invalid_node_output" });
  });

  test("leaves what nobody decides in time to an operator, where it says so", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        draft: agent,
        release: { kind: "gate", gate: "approval", after: ["draft"], ...ask, onDeadline: "operator", rework: "draft" },
      },
    });
    const expired = play(workflow, ({ node }) => (node === "draft" ? { output: "x" } : decided("expired")));
    expect(expired.last).toMatchObject({ do: "hold", reason: "deadline_passed", node: "release", round: 1 });
    const again = play(workflow, () => decided("approved"), choose(expired.history, "retry", expired.last));
    expect(again.started).toEqual(["draft", "release", "release"]);
    expect(again.last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });
});

describe("work that is sent back while some of it is still open", () => {
  const workflow = defineWorkflow({
    ...base,
    parallel: 3,
    nodes: {
      fast: agent,
      slow: agent,
      check: {
        kind: "gate",
        gate: "go_no_go",
        after: ["fast", "slow"],
        join: "any",
        judge: (scope) => isGood(scope.output("fast") ?? scope.output("slow")),
        rework: ["fast", "slow"],
      },
      end: { ...agent, after: ["check"] },
    },
  });
  const sentBack = (): History => proceed(workflow, settle(proceed(workflow, started()), { output: "bad" }));

  test("starts anew only when that has ended, whatever it brought", () => {
    expect(sentBack().executions.map(({ node, state }) => `${node} ${state}`)).toEqual([
      "fast done",
      "slow open",
      "check done",
    ]);
    expect(decide(workflow, sentBack())).toEqual({ do: "wait" });
    for (const ended of [{ output: "x" }, { state: "failed" }] as const) {
      expect(decide(workflow, settle(sentBack(), ended))).toMatchObject({
        do: "start",
        nodes: [
          { node: "fast", round: 2 },
          { node: "slow", round: 2 },
        ],
      });
    }
  });
});
