import { describe, expect, test } from "vitest";
import { z } from "zod";
import { checkMigration } from "../src/check-migration.ts";
import { decide } from "../src/decide.ts";
import { defineWorkflow } from "../src/define-workflow.ts";
import type { History } from "../src/history.ts";
import { choose, play, proceed, settle, started } from "./player.ts";
import { agent, text, worker } from "./workflows.ts";

const base = { name: "example", version: "1", input: z.json() };
const next = { ...base, version: "2" };
const judge = () => ({ pass: true, feedback: "" });

const from = defineWorkflow({ ...base, nodes: { one: agent, two: { ...agent, after: ["one"] } } });
/** One is done, two is open. */
const midway = proceed(from, settle(proceed(from, started()), { output: "x" }));

const ok = { ok: true };
const problem = (...problems: readonly string[]) => ({ ok: false, problems });

describe("checkMigration", () => {
  test("lets an instance go on where only what is to come has changed", () => {
    const to = defineWorkflow({
      ...next,
      nodes: { one: agent, two: { ...agent, after: ["one"] }, three: { ...agent, after: ["two"] } },
    });
    expect(checkMigration(from, to, midway)).toEqual(ok);
    expect(decide(to, settle(midway, { output: "x" }))).toMatchObject({ do: "start", nodes: [{ node: "three" }] });
  });

  test("lets go of a node that was never started", () => {
    const to = defineWorkflow({ ...next, nodes: { one: agent } });
    expect(checkMigration(from, to, settle(proceed(from, started()), { output: "x" }))).toEqual(ok);
  });

  test("refuses another workflow, and an input that it does not take", () => {
    const to = defineWorkflow({ ...next, name: "other", input: z.object({ id: text }), nodes: { one: agent } });
    expect(checkMigration(from, to, started())).toEqual(
      problem(
        'it is the workflow "example", not "other"',
        "its input does not fit: id: Invalid input: expected string, received undefined",
      ),
    );
  });

  test("refuses to lose what has been started", () => {
    const to = defineWorkflow({ ...next, nodes: { one: agent } });
    expect(checkMigration(from, to, midway)).toEqual(problem('node "two" has been started, and is not there any more'));
  });

  test("refuses another kind of node", () => {
    const tool = { kind: "tool", tool: { name: "t" }, input: () => 1, output: text } as const;
    const to = defineWorkflow({ ...next, nodes: { one: tool, two: { ...agent, after: ["one"] } } });
    expect(checkMigration(from, to, midway)).toEqual(problem('node "one" was of kind agent, and is of kind tool'));
    const map = { ...agent, forEach: () => ["a"], item: text } as const;
    const mapped = defineWorkflow({ ...next, nodes: { one: map, two: { ...agent, after: ["one"] } } });
    expect(checkMigration(from, mapped, midway)).toEqual(
      problem('node "one" was of kind agent, and is of kind agent for each item'),
    );
  });

  test("refuses an output that does not fit any more, but not one that never did", () => {
    const to = defineWorkflow({
      ...next,
      nodes: { one: { ...agent, output: z.number() }, two: { ...agent, after: ["one"] } },
    });
    const message = 'what node "one" brought does not fit: Invalid input: expected number, received string';
    expect(checkMigration(from, to, midway)).toEqual(problem(message));
    const failed = play(from, () => ({ state: "failed" })).history;
    expect(checkMigration(from, to, failed)).toEqual(ok);
  });

  test("mends what did not fit before", () => {
    const strict = defineWorkflow({ ...base, nodes: { one: { ...agent, output: z.number() } } });
    const { history } = play(strict, () => ({ output: "x" }));
    const to = defineWorkflow({ ...next, nodes: { one: agent } });
    expect(checkMigration(strict, to, history)).toEqual(ok);
    expect(decide(to, history)).toMatchObject({ do: "end", outcome: { kind: "succeeded" } });
  });

  test("refuses other work for what is open", () => {
    const other = { ...agent, agent: { name: "other", version: "2" } } as const;
    const to = defineWorkflow({ ...next, nodes: { one: other, two: { ...other, after: ["one"] } } });
    expect(checkMigration(from, to, midway)).toEqual(
      problem('node "two" is open with agent worker 1, and would be agent other 2'),
    );
    const open = (kind: "tool" | "workflow" | "human", name: string) =>
      defineWorkflow({
        ...base,
        nodes: {
          one:
            kind === "tool"
              ? { kind, tool: { name }, input: () => 1, output: text }
              : kind === "workflow"
                ? { kind, workflow: { name, version: "1" }, input: () => 1, output: text }
                : { kind, question: () => name, approvers: { users: ["ada"] } },
        },
      });
    const check = (kind: "tool" | "workflow" | "human") =>
      checkMigration(open(kind, "a"), open(kind, "b"), proceed(open(kind, "a"), started()));
    expect(check("tool")).toEqual(problem('node "one" is open with tool a, and would be tool b'));
    expect(check("workflow")).toEqual(problem('node "one" is open with workflow a 1, and would be workflow b 1'));
    expect(check("human")).toEqual(ok);
  });

  test("refuses a new node before what has been started", () => {
    const nodes = { one: agent, zero: agent, two: { ...agent, after: ["one", "zero"] } } as const;
    expect(checkMigration(from, defineWorkflow({ ...next, nodes }), midway)).toEqual(
      problem('node "zero" would come before "two", which has been started'),
    );
  });

  test("refuses to forget what was sent back", () => {
    const gate = { kind: "gate", gate: "feedback", after: ["one"], rework: "one" } as const;
    const nos = defineWorkflow({
      ...base,
      nodes: { one: agent, check: { ...gate, judge: () => ({ pass: false, feedback: "no" }) } },
    });
    const { history } = play(nos, () => ({ output: "x" }));
    const free = { kind: "gate", gate: "go_no_go", after: ["one"], judge } as const;
    const to = defineWorkflow({ ...next, nodes: { one: agent, check: free } });
    expect(checkMigration(nos, to, history)).toEqual(
      problem(
        'node "one" is in round 2, and other gates would send it back: keep those that have',
        'node "check" was of kind feedback gate, and is of kind go_no_go gate',
      ),
    );
    const kept = defineWorkflow({ ...next, nodes: { one: agent, check: { ...gate, judge } } });
    expect(checkMigration(nos, kept, history)).toEqual(ok);
  });

  test("asks nothing of a node that was sent back and has not been started again", () => {
    const gate = { kind: "gate", gate: "feedback", after: ["one"], rework: "one" } as const;
    const nos = defineWorkflow({
      ...base,
      nodes: { one: agent, check: { ...gate, judge: () => ({ pass: false, feedback: "no" }) } },
    });
    const sentBack = proceed(nos, settle(proceed(nos, started()), { output: "x" }));
    const to = defineWorkflow({
      ...next,
      nodes: { one: { ...agent, output: z.number() }, check: { ...gate, judge } },
    });
    expect(checkMigration(nos, to, sentBack)).toEqual(ok);
  });

  test("keeps what was chosen where it still means something", () => {
    const failed = play(from, () => ({ state: "failed" }));
    const chosen: History = choose(failed.history, "skip", failed.last);
    const lost = { choice: "skip", node: "gone", round: 1, item: null, callId: null } as const;
    const result = { ...lost, node: null };
    const to = defineWorkflow({ ...next, nodes: { one: agent } });
    expect(checkMigration(from, to, { ...chosen, choices: [...chosen.choices, lost, result] })).toEqual(ok);
    expect(worker.name).toBe("worker");
  });
});
