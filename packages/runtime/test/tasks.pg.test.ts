import { listAgents, startTask } from "@holdpoint/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineChildRuns, defineTask } from "../src/index.ts";
import { aDesk, ask } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const BUILD = defineTask({ name: "ci-build", version: "1", description: "Builds a branch" });

describe("a worker that has tasks", () => {
  test("makes them known, and starts one without waking anybody for it", async () => {
    const tool = defineChildRuns({
      name: "build",
      description: "Has it built",
      input: z.object({ order: z.string() }),
      runs: ({ order }) => [{ agent: BUILD, goal: `build ${order}` }],
    });
    const parent = aDesk([{ calls: [ask("build", "main")] }, { text: "built" }], [{ tool, executed: [], lookedUp: 0 }]);
    await fleet.start(parent, { tasks: [BUILD] });
    const known = (await listAgents(fleet.store)).find(({ name }) => name === BUILD.name);
    expect(known).toMatchObject({ kind: "task", tools: [], task: BUILD.terms });
    const { id } = await fleet.submit(parent);
    await fleet.untilStatus(id, "waiting_dependency");
    const [child] = (await fleet.load(id)).children;
    expect(child).toMatchObject({ agent: { name: "ci-build", version: "1" }, status: "queued" });
    expect(await fleet.publisher.waiting(BUILD)).toBe(0);
    const start = {
      runId: child?.id ?? "",
      startedBy: "ci",
      executor: "ci",
      tokenHash: "0".repeat(64),
      startKey: null,
    };
    expect(await startTask(fleet.store, start)).toMatchObject({ result: "started" });
  });

  test("does not start where one of them is work of workers", async () => {
    const desk = aDesk([{ text: "done" }], []);
    await fleet.start(desk);
    const same = defineTask({ name: desk.name, version: desk.version, description: "The same" });
    const other = aDesk([{ text: "done" }], []);
    await expect(fleet.start(other, { tasks: [same] })).rejects.toThrow(
      `${desk.name}@${desk.version} is known as what workers do`,
    );
    await expect(fleet.start({ ...other, name: BUILD.name, version: BUILD.version })).rejects.toThrow(
      "is registered already as a task",
    );
  });
});
