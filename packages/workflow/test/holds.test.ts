import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import { choose, play, proceed, type Result, settle, started } from "./player.ts";
import { agent, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.json() };
const chain = defineWorkflow({
  ...base,
  nodes: {
    find: {
      kind: "agent",
      agent: worker,
      goal: () => "find",
      output: z.object({ id: z.string() }),
      whenSkipped: { id: "?" },
    },
    use: {
      kind: "agent",
      agent: worker,
      after: ["find"],
      goal: (scope) => `use ${scope.need("find").id}`,
      output: text,
    },
  },
});
const found: Result = { output: { id: "7" } };
const heldBy = (result: Result) => play(chain, ({ node }) => (node === "find" ? result : { output: "x" }));

describe("what a person decides about", () => {
  test("a node that failed, with why", () => {
    expect(heldBy({ state: "failed", result: "failed", message: "no such order" }).last).toEqual({
      do: "hold",
      reason: "node_failed",
      node: "find",
      round: 1,
      item: null,
      callId: "call-1",
      message: "no such order",
    });
    expect(heldBy({ state: "failed", result: "denied" }).last).toMatchObject({ message: "it ended as denied" });
    expect(heldBy({ state: "failed", result: null }).last).toMatchObject({ message: "it ended as failed" });
  });

  test("a child that ran and achieved nothing, with the step and why", () => {
    const message = "step lookup: permission orders.read is missing";
    expect(heldBy({ ...found, result: "blocked", message }).last).toMatchObject({ reason: "node_blocked", message });
    expect(heldBy({ ...found, result: "blocked" }).last).toMatchObject({ message: "it ran, and achieved nothing" });
  });

  test("an output that does not fit, with the place in it; it is never passed on", () => {
    expect(heldBy({ output: { id: 7 } }).last).toMatchObject({
      reason: "invalid_node_output",
      node: "find",
      message: "id: Invalid input: expected string, received number",
    });
  });

  test("an output whose schema cannot be used", () => {
    const late = z.string().refine(async () => true);
    const workflow = defineWorkflow({ ...base, nodes: { one: { ...agent, output: late } } });
    expect(play(workflow, () => ({ output: "x" })).last).toMatchObject({
      reason: "invalid_node_output",
      message: expect.stringContaining("Promise"),
    });
  });

  test("before anything else starts, while what is open goes on", () => {
    const workflow = defineWorkflow({ ...base, parallel: 2, nodes: { one: agent, two: agent, three: agent } });
    const open = settle(proceed(workflow, started()), { state: "failed" });
    expect(decide(workflow, open)).toMatchObject({ do: "hold", node: "one" });
    const chosen = choose(open, "skip", decide(workflow, open));
    expect(decide(workflow, chosen)).toMatchObject({ do: "start", nodes: [{ node: "three" }] });
  });
});

describe("a person's choice", () => {
  const problems: readonly Result[] = [{ state: "failed" }, { ...found, result: "blocked" }, { output: "no object" }];

  test.each(problems)("to retry starts the node anew, once: %j", (problem) => {
    const { history, last } = heldBy(problem);
    const chosen = choose(history, "retry", last);
    const again = play(chain, ({ node }) => (node === "find" ? problem : { output: "x" }), chosen);
    expect(again.started).toEqual(["find", "find"]);
    expect(again.last).toMatchObject({ do: "hold", node: "find", callId: "call-2" });
    const good = play(chain, ({ node }) => (node === "find" ? found : { output: "x" }), chosen);
    expect(good.started).toEqual(["find", "find", "use"]);
    expect(good.last).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test.each(problems)("to skip gives those after it what the definition says: %j", (problem) => {
    const { history, last } = heldBy(problem);
    const goals: string[] = [];
    const end = play(
      chain,
      (each) => {
        if (each.kind === "agent") goals.push(each.goal);
        return { output: "x" };
      },
      choose(history, "skip", last),
    ).last;
    expect(goals).toEqual(["use ?"]);
    expect(end).toEqual({ do: "end", outcome: { kind: "partial", reason: "skipped: find" }, output: null });
  });

  test("counts for nothing once there is a newer execution", () => {
    const { history, last } = heldBy({ state: "failed" });
    const skipped = choose(history, "skip", last);
    const [first] = skipped.executions;
    if (first === undefined) throw new Error("nothing was started");
    const newer = { ...first, callId: "call-2", state: "open" as const };
    expect(decide(chain, { ...skipped, executions: [first, newer] })).toEqual({ do: "wait" });
  });

  test("to skip a node without a value for those after it gives them null", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        find: agent,
        tell: { kind: "agent", agent: worker, after: ["find"], goal: (s) => `${s.output("find")}`, output: text },
        need: { kind: "agent", agent: worker, after: ["tell"], goal: (s) => s.need("find"), output: text },
      },
    });
    const failed = play(workflow, () => ({ state: "failed" }));
    const { last, history } = play(workflow, () => ({ output: "x" }), choose(failed.history, "skip", failed.last));
    expect(history.executions.map(({ node }) => node)).toEqual(["find", "tell"]);
    expect(last).toMatchObject({
      reason: "graph_error",
      node: "need",
      message: 'goal: it needs what "find" brings, but that was skipped',
    });
  });
});

describe("a function that throws", () => {
  const failing = (what: string) => () => {
    throw new Error(`${what} is broken`);
  };
  const gate = { kind: "gate", gate: "go_no_go", after: ["one"] } as const;
  const tool = { kind: "tool", tool: { name: "t" }, output: text } as const;
  const human = { kind: "human", approvers: { users: ["ada"] } } as const;
  const question = () => "really?";
  const cases = {
    when: defineWorkflow({ ...base, nodes: { one: { ...agent, when: failing("when") } } }),
    goal: defineWorkflow({ ...base, nodes: { one: { ...agent, goal: failing("goal") } } }),
    input: defineWorkflow({ ...base, nodes: { one: { ...tool, input: failing("input") } } }),
    question: defineWorkflow({ ...base, nodes: { one: { ...human, question, show: failing("question") } } }),
    forEach: defineWorkflow({ ...base, nodes: { one: { ...agent, forEach: failing("forEach"), item: text } } }),
    judge: defineWorkflow({ ...base, nodes: { one: agent, two: { ...gate, judge: failing("judge") } } }),
  };

  test.each(Object.entries(cases))("holds its node: %s", (what, workflow) => {
    const { last } = play(workflow, () => ({ output: "x" }));
    const node = what === "judge" ? "two" : "one";
    const hold = { do: "hold", reason: "graph_error", round: 1, item: null, callId: null };
    expect(last).toEqual({ ...hold, node, message: `${what}: ${what} is broken` });
  });

  test.each(Object.entries(cases))("is called again after a retry, and let go by a skip: %s", (what, workflow) => {
    const first = play(workflow, () => ({ output: "x" }));
    expect(play(workflow, () => ({ output: "x" }), choose(first.history, "retry", first.last)).last).toEqual(
      first.last,
    );
    expect(play(workflow, () => ({ output: "x" }), choose(first.history, "skip", first.last)).last).toMatchObject({
      do: "end",
      outcome: { kind: "partial", reason: `skipped: ${what === "judge" ? "two" : "one"}` },
    });
  });

  test("in a retry can be skipped as well", () => {
    let isBroken = false;
    const goal = () => (isBroken ? failing("goal")() : "do it");
    const workflow = defineWorkflow({ ...base, nodes: { one: { ...agent, goal } } });
    const failed = play(workflow, () => ({ state: "failed" }));
    isBroken = true;
    const retried = play(workflow, () => ({}), choose(failed.history, "retry", failed.last));
    expect(retried.last).toMatchObject({ reason: "graph_error", callId: "call-1" });
    const end = play(workflow, () => ({}), choose(retried.history, "skip", retried.last)).last;
    expect(end).toMatchObject({ do: "end", outcome: { kind: "partial" } });
  });

  test("for one item can be skipped for that item alone", () => {
    const goal = ({ item }: { readonly item: string }) => (item === "b" ? failing("goal")() : item);
    const workflow = defineWorkflow({
      ...base,
      nodes: { one: { kind: "agent", agent: worker, forEach: () => ["a", "b", "c"], item: text, goal, output: text } },
    });
    const held = play(workflow, () => ({ output: "x" }));
    expect(held.last).toMatchObject({ reason: "graph_error", item: 1, callId: null });
    const { started: names, last } = play(workflow, () => ({ output: "x" }), choose(held.history, "skip", held.last));
    expect(names).toEqual(["one", "one[0]", "one[2]"]);
    expect(last).toMatchObject({ do: "end", outcome: { kind: "partial", reason: "achieved in part: one" } });
  });

  test("is told in few words that can be stored, whatever it throws", () => {
    const long = defineWorkflow({ ...base, nodes: { one: { ...agent, goal: failing("\u0000".repeat(1_000)) } } });
    const { last } = play(long, () => ({}));
    expect(last).toMatchObject({ message: `goal: ${"\uFFFD".repeat(493)}…` });
    const odd = defineWorkflow({
      ...base,
      nodes: {
        one: {
          ...agent,
          goal: () => {
            throw null;
          },
        },
      },
    });
    expect(play(odd, () => ({})).last).toMatchObject({ message: "goal: it threw something that is no Error" });
  });
});

describe("what a function may give and read", () => {
  const one = <Given>(given: Given) =>
    decide(
      defineWorkflow({
        ...base,
        nodes: { one: { kind: "tool", tool: { name: "t" }, input: () => given as never, output: text } },
      }),
      started(),
    );

  test("is JSON, and nothing that only looks like it", () => {
    expect(one({ a: undefined, b: [1, null] })).toMatchObject({ do: "start", nodes: [{ input: { b: [1, null] } }] });
    expect(one({ at: [new Date(0)] })).toMatchObject({ do: "hold", message: "input: at.0: a Date is no JSON" });
    expect(one({ sum: Number.NaN })).toMatchObject({ message: "input: sum: NaN is no JSON" });
    expect(one(undefined)).toMatchObject({ message: "input: a value of type undefined is no JSON" });
    const round: { self?: unknown } = {};
    round.self = round;
    expect(one(round)).toMatchObject({ message: "input: it is more than 64 levels deep" });
  });

  test("fits what the tool takes", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        one: {
          kind: "tool",
          tool: { name: "t", input: z.object({ cents: z.number().int() }) },
          input: () => ({ cents: 1.5 }),
          output: text,
        },
      },
    });
    expect(decide(workflow, started())).toMatchObject({
      do: "hold",
      reason: "graph_error",
      message: "input: cents: Invalid input: expected int, received number",
    });
  });

  test("comes from nodes before it", () => {
    const reading = (name: string) =>
      decide(
        defineWorkflow({
          ...base,
          nodes: {
            one: { kind: "agent", agent: worker, goal: (scope) => `${scope.output(name as "two")}`, output: text },
            two: agent,
          },
        }),
        started(),
      );
    expect(reading("two")).toMatchObject({
      reason: "graph_error",
      message: 'goal: it reads "two", which does not come before it: name it in "after"',
    });
    expect(reading("three")).toMatchObject({ message: 'goal: it reads "three", and there is no such node' });
  });

  test("is an item only where there is one", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: { one: { kind: "agent", agent: worker, goal: (scope) => scope.item, output: text } },
    });
    expect(decide(workflow, started())).toMatchObject({
      message: 'goal: "item" is there only for what a map does with each item',
    });
  });

  test("belongs to each reader alone: whoever changes it changes nobody else's", () => {
    const workflow = defineWorkflow({
      ...base,
      nodes: {
        one: { ...agent, output: z.array(z.number()) },
        two: {
          kind: "agent",
          agent: worker,
          after: ["one"],
          when: (scope) => scope.need("one").reverse().length > 0,
          goal: (scope) => JSON.stringify(scope.need("one")),
          output: text,
        },
      },
    });
    const history = settle(proceed(workflow, started()), { output: [1, 2, 3] });
    expect(decide(workflow, history)).toMatchObject({ nodes: [{ input: { goal: "[1,2,3]" } }] });
  });
});

describe("the result", () => {
  const result = (output: z.ZodType<string>, made: () => string) =>
    defineWorkflow({ ...base, nodes: { one: agent }, output, result: made });
  const hold = { do: "hold", reason: "graph_error", node: null, round: 1, item: null, callId: null };

  test("that throws, or does not fit, is held; a skip ends without it", () => {
    const broken = result(text, () => {
      throw new Error("no");
    });
    const { history, last } = play(broken, () => ({ output: "x" }));
    expect(last).toEqual({ ...hold, message: "result: no" });
    expect(decide(broken, choose(history, "retry", last))).toEqual(last);
    expect(decide(broken, choose(history, "skip", last))).toEqual({
      do: "end",
      outcome: { kind: "partial", reason: "skipped: the result" },
      output: null,
    });
    const unfit = result(z.string().max(1), () => "long");
    expect(play(unfit, () => ({ output: "x" })).last).toMatchObject({
      ...hold,
      message: expect.stringContaining("result: "),
    });
  });

  test("says what was achieved only in part", () => {
    const workflow = defineWorkflow({ ...base, nodes: { one: agent, two: agent, three: agent } });
    const results: Record<string, Result> = { one: { state: "skipped" }, two: { result: "partial" } };
    const { last } = play(workflow, ({ node }) => ({ output: "x", ...results[node] }));
    expect(last).toEqual({
      do: "end",
      outcome: { kind: "partial", reason: "skipped: one; achieved in part: two" },
      output: null,
    });
  });
});

describe("a question to a person", () => {
  const workflow = (onDeadline: "reject" | "operator") =>
    defineWorkflow({
      ...base,
      nodes: {
        ask: {
          kind: "human",
          question: () => "Which?",
          approvers: { roles: ["lead"] },
          onDeadline,
          output: z.enum(["a", "b"]),
        },
      },
      result: (scope) => scope.output("ask"),
    });
  const answered = (output: Result["output"], onDeadline: "reject" | "operator" = "reject") =>
    play(workflow(onDeadline), () => ({ output: output ?? null })).last;

  test("brings the decision, the note and an answer that fits", () => {
    expect(answered({ decision: "answered", note: "clear", answer: "a" })).toMatchObject({
      output: { decision: "answered", note: "clear", answer: "a" },
    });
    expect(answered({ decision: "rejected" })).toMatchObject({
      do: "end",
      outcome: { kind: "succeeded" },
      output: { decision: "rejected", note: null, answer: null },
    });
    expect(answered({ decision: "answered", answer: "c" })).toMatchObject({
      do: "hold",
      reason: "invalid_node_output",
      message: expect.stringContaining("answer: "),
    });
  });

  test("says what an answer must look like, as far as JSON schema can; any JSON where the node says nothing", () => {
    const schemaOf = (output: { output?: z.ZodType }) => {
      const ask = { kind: "human", question: () => "Which?", approvers: { roles: ["lead"] }, ...output } as const;
      const decision = decide(defineWorkflow({ ...base, nodes: { ask } }), started());
      const [node] = decision.do === "start" ? decision.nodes : [];
      return node?.kind === "human" ? node.request.answerSchema : undefined;
    };
    expect(schemaOf({ output: z.enum(["a", "b"]) })).toMatchObject({ type: "string", enum: ["a", "b"] });
    expect(schemaOf({ output: z.string().transform((text) => text.length) })).toMatchObject({ type: "string" });
    expect(schemaOf({ output: z.object({ at: z.date() }) })).toMatchObject({ properties: { at: {} } });
    expect(schemaOf({})).toBeNull();
  });

  test("that nobody answers in time goes on as expired, or is left to an operator", () => {
    expect(answered({ decision: "expired" })).toMatchObject({ do: "end", output: { decision: "expired" } });
    expect(answered({ decision: "expired" }, "operator")).toMatchObject({ do: "hold", reason: "deadline_passed" });
    expect(answered({ decision: "approved" }, "operator")).toMatchObject({ do: "end" });
  });
});

describe("a child workflow", () => {
  test("is started with an input that it takes", () => {
    const child = defineWorkflow({ ...base, name: "child", input: z.object({ n: z.number() }), nodes: { one: agent } });
    const parent = (n: number) =>
      defineWorkflow({
        ...base,
        nodes: { run: { kind: "workflow", workflow: child, input: () => ({ n }), output: z.json(), retries: 2 } },
      });
    expect(decide(parent(1), started())).toEqual({
      do: "start",
      nodes: [
        {
          kind: "workflow",
          node: "run",
          round: 1,
          item: null,
          workflow: { name: "child", version: "1" },
          input: { n: 1 },
          retries: 2,
        },
      ],
    });
    expect(decide(parent(Number.NaN), started())).toMatchObject({ do: "hold", reason: "graph_error" });
  });
});
