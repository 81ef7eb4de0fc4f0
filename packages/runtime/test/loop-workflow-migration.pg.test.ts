import { registerAgent, requestMigration, requestPause, resumeRun } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, type WorkflowAgent } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, lastReason, nodesOf, ORDER, untilHeld } from "./a-graph.ts";
import { type Fleet, OPERATOR, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Two versions of a workflow that prepares something, asks a manager, and closes; the second closes with another word. */
function twoVersions(second: { readonly firstNode?: string } = {}) {
  const name = aGraphName();
  const prepare = aRead("prepare_it", async () => "prepared");
  const versionOf = (version: string, firstNode: string) =>
    bindWorkflow(
      defineWorkflow({
        name,
        version,
        input: ORDER,
        nodes: {
          [firstNode]: {
            kind: "tool",
            tool: { name: "prepare_it" },
            input: (): { order: string } => ({ order: "4411" }),
            output: z.string(),
          },
          release: {
            kind: "gate",
            gate: "approval",
            after: [firstNode],
            question: () => "Go on?",
            approvers: { roles: ["manager"] },
          },
        },
        result: () => `closed by version ${version}`,
      }),
      { tools: [prepare.tool] },
    );
  return {
    prepare,
    old: versionOf("1", "prepare"),
    next: versionOf("2", second.firstNode ?? "prepare"),
  };
}

async function begin(agents: readonly WorkflowAgent[]): Promise<string> {
  const [old] = agents;
  if (old === undefined) throw new Error("there is one at least");
  await fleet.start(old, { agents });
  const runId = await beginGraph(fleet, old);
  await fleet.untilStatus(runId, "waiting_approval");
  return runId;
}

const migrate = (runId: string, version = "2") => requestMigration(fleet.store, { runId, version, actor: OPERATOR });

describe("a running workflow whose definition has changed", () => {
  test("stays with the version that it was started with, whoever has the other one", async () => {
    const { old, next } = twoVersions();
    const runId = await begin([old, next]);
    await fleet.decide(runId, "approve");
    expect((await fleet.untilStatus(runId, "completed")).result).toBe("closed by version 1");
  });

  test("goes on in another one by an operator's word, and does nothing again that it has done", async () => {
    const { old, next, prepare } = twoVersions();
    const runId = await begin([old, next]);
    expect((await migrate(runId)).result).toBe("accepted");
    await fleet.decide(runId, "approve");
    const ended = await fleet.untilStatus(runId, "completed");
    expect(ended).toMatchObject({ agent: { version: "2" }, result: "closed by version 2" });
    expect(prepare.executed).toHaveLength(1);
    expect(await nodesOf(fleet, runId)).toEqual(["prepare#1 succeeded", "release#1 succeeded"]);
    const rows = await fleet.rows("transitions", runId, "seq");
    expect(rows.map(({ reason }) => reason)).toContain("migrated from 1 to 2");
  });

  test("is held where what it has done is not there any more, and goes on in its own version if that is passed over", async () => {
    const { old, next } = twoVersions({ firstNode: "other" });
    const runId = await begin([old, next]);
    await migrate(runId);
    await fleet.decide(runId, "approve");
    await untilHeld(fleet, runId, "migration_refused");
    expect(await lastReason(fleet, runId)).toContain('node "prepare" has been started, and is not there any more');
    await fleet.order(runId, { choice: "skip" });
    expect((await fleet.untilStatus(runId, "completed")).agent.version).toBe("1");
  });

  test("is held where its worker does not have the other version, and goes on in it once one has", async () => {
    const { old, next } = twoVersions();
    const runId = await begin([old]);
    await registerAgent(fleet.store, { name: next.name, version: "2", kind: "workflow", tools: [] });
    await migrate(runId);
    await fleet.decide(runId, "approve");
    await untilHeld(fleet, runId, "migration_refused");
    expect(await lastReason(fleet, runId)).toContain("does not have 2");
    // One that has both, and takes the run before the one that has not: that one is drained with the fleet.
    await requestPause(fleet.store, { runId, actor: OPERATOR });
    await fleet.start(next, { agents: [old, next] });
    await resumeRun(fleet.store, { runId, actor: OPERATOR });
    await waitFor(
      async () => {
        const { run } = await fleet.load(runId);
        if (run.state.status === "waiting_operator") await fleet.order(runId, { choice: "retry" });
        return run.state.status === "completed";
      },
      { deadlineMs: 20_000, what: "a worker with both versions to have taken it" },
    );
    expect((await fleet.load(runId)).run.agent.version).toBe("2");
  });

  test("can't be told to go on in a version that nobody has, and only a workflow can", async () => {
    const { old } = twoVersions();
    const runId = await begin([old]);
    expect(await migrate(runId, "9")).toEqual({ result: "version_unknown" });
    await fleet.decide(runId, "approve");
    await fleet.untilStatus(runId, "completed");
    expect(await migrate(runId, "1")).toMatchObject({ result: "refused", rule: "run_ended" });
  });
});
