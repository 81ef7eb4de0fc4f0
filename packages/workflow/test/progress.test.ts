import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineWorkflow } from "../src/define-workflow.ts";
import { progressOf } from "../src/progress.ts";
import { choose, play, proceed, settle, started } from "./player.ts";
import { agent, text } from "./workflows.ts";

const workflow = defineWorkflow({
  name: "example",
  version: "1",
  input: z.json(),
  parallel: 2,
  nodes: {
    draft: agent,
    check: {
      kind: "gate",
      gate: "feedback",
      after: ["draft"],
      judge: (scope) => ({ pass: scope.need("draft") === "good", feedback: "bad" }),
      rework: "draft",
    },
    each: { ...agent, after: ["check"], forEach: () => ["a", "b"], item: text },
    end: { ...agent, after: ["each"] },
  },
});
const drafted = (output: string) => settle(proceed(workflow, started()), { output });

describe("progressOf", () => {
  test("says what comes first", () => {
    expect(progressOf(workflow, started())).toEqual({
      lastCompleted: null,
      next: ["draft"],
      open: [],
      held: [],
      done: 0,
      total: 4,
      inWords: "0 of 4 nodes done; last completed: none; next: draft",
    });
  });

  test("says what is open, and what waits only for that", () => {
    expect(progressOf(workflow, proceed(workflow, started()))).toMatchObject({
      open: [{ node: "draft", round: 1, item: null }],
      next: ["check"],
      inWords: "0 of 4 nodes done; last completed: none; open: draft; next: check",
    });
  });

  test("counts what was sent back as still to be done", () => {
    const sentBack = proceed(workflow, drafted("bad"));
    expect(progressOf(workflow, sentBack)).toMatchObject({ done: 0, lastCompleted: null, next: ["draft"] });
  });

  test("counts a map when all of its items are complete", () => {
    const listed = proceed(workflow, proceed(workflow, drafted("good")));
    const open = proceed(workflow, listed);
    expect(progressOf(workflow, open)).toMatchObject({
      done: 2,
      lastCompleted: "check",
      open: [{ node: "each", round: 1, item: 0 }],
      next: ["end"],
    });
    const first = settle(open, { output: "x" });
    expect(progressOf(workflow, first)).toMatchObject({ done: 2, open: [], next: ["each"] });
    const all = settle(proceed(workflow, first), { output: "x" });
    expect(progressOf(workflow, all)).toMatchObject({ done: 3, lastCompleted: "each", next: ["end"] });
  });

  test("says what waits for a person, and is done when all is", () => {
    const failed = play(workflow, () => ({ state: "failed" }));
    expect(progressOf(workflow, failed.history)).toMatchObject({
      held: ["draft"],
      inWords: "0 of 4 nodes done; last completed: none; waits for a decision about: draft; next: check",
    });
    const skipped = choose(failed.history, "skip", failed.last);
    expect(progressOf(workflow, skipped)).toMatchObject({ lastCompleted: "draft", held: [], next: ["check"] });
    const { history } = play(workflow, () => ({ output: "good" }));
    expect(progressOf(workflow, history).inWords).toBe("4 of 4 nodes done; last completed: end");
  });

  test("goes by the starts, not by the order of the declaration", () => {
    const backwards = defineWorkflow({
      name: "example",
      version: "1",
      input: z.json(),
      nodes: { last: { ...agent, after: ["first"] }, first: agent },
    });
    const { history } = play(backwards, () => ({ output: "x" }));
    expect(progressOf(backwards, history)).toMatchObject({ lastCompleted: "last", done: 2 });
  });

  test("shows what is open of another definition's nodes, too", () => {
    const strange = { node: "gone", round: 1, item: null, callId: "c", result: null, output: null, message: null };
    const history = { ...started(), executions: [{ ...strange, state: "open" as const }] };
    expect(progressOf(workflow, history)).toMatchObject({ open: [{ node: "gone" }], next: ["draft"], done: 0 });
  });

  test("counts what will be passed over as next", () => {
    const off = { ...agent, when: () => false } as const;
    const joined = defineWorkflow({
      name: "example",
      version: "1",
      input: z.json(),
      nodes: { off, end: { ...agent, after: ["off"], join: "any" } },
    });
    expect(progressOf(joined, proceed(joined, started()))).toMatchObject({ done: 1, next: ["end"] });
  });
});
