import { loadRun, registerAgent } from "@holdpoint/store";
import { findRun } from "@holdpoint/store/read";
import { describe, expect, test } from "vitest";
import { AGENT, problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, claim, end, move, stored } from "./stage-run.ts";

const api = useTestApi();

const alice = () => api.as("alice-token");
const mona = () => api.as("mona-token");
const olga = () => api.as("olga-token");

const FLOW = { name: "returns", version: "1" };
const INPUT_SCHEMA = {
  type: "object",
  properties: { order: { type: "string", pattern: "^ord_[0-9]+$" }, urgent: { type: "boolean" } },
  required: ["order"],
};

/** A run of a workflow that takes an order. */
async function aFlow(more: { input?: { order: string }; instanceKey?: string } = {}, key?: string) {
  await registerAgent(api.store, { ...FLOW, kind: "workflow", tools: [], inputSchema: INPUT_SCHEMA });
  const session = await alice().createSession();
  const submission = { sessionId: session.id, agent: FLOW, goal: "return it", input: { order: "ord_1" }, ...more };
  return alice().submitRun(submission, key === undefined ? {} : { idempotencyKey: key });
}

async function fail(runId: string) {
  const { workerId } = await claim(api.store, runId);
  await move(api.store, {
    runId,
    workerId,
    event: { type: "Ended", status: "failed", outcome: null, reason: "node_failed" },
  });
}

describe("submitting a workflow", () => {
  test("takes an input that fits its schema, and shows it to who may read payloads, in no list", async () => {
    const { id } = await aFlow({ input: { order: "ord_7" } });
    const run = await alice().showRun({ runId: id });
    expect(run).toMatchObject({ kind: "workflow", input: { order: "ord_7" }, result: null, openNodes: [] });
    expect(await olga().showRun({ runId: id })).toHaveProperty("input", { order: "ord_7" });
    // A manager sees every run, and payloads only of those in which they have a part.
    const seen = await mona().showRun({ runId: id });
    expect(seen).not.toHaveProperty("input");
    expect(seen).not.toHaveProperty("result");
    const { items } = await alice().listRuns({ sessionId: run.sessionId });
    expect(items.map((each) => "input" in each)).toEqual([false]);
  });

  test.each([
    [undefined, /give what returns@1 takes/],
    [{ order: "7" }, /→ at order/],
    [{}, /→ at order/],
    [{ order: "ord_1", ugrent: true }, /ugrent/],
  ])("refuses %j and says what is wrong", async (input, message) => {
    const { sessionId } = await aFlow();
    const asked = { sessionId, agent: FLOW, goal: "return it", ...(input === undefined ? {} : { input }) };
    const problem = await problemOf(alice().submitRun(asked));
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    expect(problem.message).toMatch(/^body\.input: /);
    expect(problem.message).toMatch(message);
    expect(problem.problem.mistakes?.map(({ path }) => path)).toEqual(["body.input"]);
  });

  test("answers the same request under its key as before, also when the workflow takes something else by now", async () => {
    const { id, sessionId } = await aFlow({}, "flow-1");
    const inputSchema = { type: "object", properties: { parcel: { type: "string" } }, required: ["parcel"] };
    await registerAgent(api.store, { ...FLOW, kind: "workflow", tools: [], inputSchema });
    const same = { sessionId, agent: FLOW, goal: "return it", input: { order: "ord_1" } };
    expect((await alice().submitRun(same, { idempotencyKey: "flow-1" })).id).toBe(id);
    const other = { ...same, input: { order: "ord_2" } };
    expect(await problemOf(alice().submitRun(other, { idempotencyKey: "flow-1" }))).toMatchObject({
      code: "idempotency_key_reused",
    });
    expect(await problemOf(alice().submitRun(same))).toMatchObject({ status: 400 });
  });

  test("an agent with a model takes no input, which nobody would read", async () => {
    const session = await alice().createSession();
    const asked = { sessionId: session.id, agent: AGENT, goal: "refund", input: { order: "ord_1" } };
    const problem = await problemOf(alice().submitRun(asked));
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    expect(problem.message).toContain("an agent takes no input");
  });

  test("one run is live under an instance key; another is refused, and told which", async () => {
    const first = await aFlow({ instanceKey: "order-9" });
    expect(first.instanceKey).toBe("order-9");
    const problem = await problemOf(aFlow({ instanceKey: "order-9" }));
    expect(problem).toMatchObject({ status: 409, code: "refused", rule: "instance_is_live" });
    expect(problem.message).toContain(`It is ${first.id}.`);
    await alice().cancelRun({ runId: first.id });
    expect((await aFlow({ instanceKey: "order-9" })).instanceKey).toBe("order-9");
  });

  test("the list of agents says who works on what", async () => {
    await aFlow();
    const { items } = await alice().listAgents();
    expect(items.map(({ name, kind }) => [name, kind])).toEqual([
      ["refunds", "agent"],
      ["returns", "workflow"],
    ]);
  });
});

describe("resuming a workflow", () => {
  test("one that has failed goes on as a run of its own, which is answered", async () => {
    const failed = await aFlow({ input: { order: "ord_3" }, instanceKey: "resumed" });
    await fail(failed.id);
    expect((await alice().showRun({ runId: failed.id })).actions).toMatchObject({
      resume: null,
      retry_as_new_run: null,
    });
    const resumed = await alice().resumeRun({ runId: failed.id });
    expect(resumed).toMatchObject({ status: "queued", retryOf: failed.id, line: failed.id, instanceKey: "resumed" });
    expect((await findRun(api.store, stored(resumed.id)))?.run.input).toEqual({ order: "ord_3" });
    const again = await problemOf(alice().resumeRun({ runId: failed.id }));
    expect(again).toMatchObject({ status: 409, rule: "line_is_live" });
    const { items } = await alice().showTimeline({ runId: failed.id });
    expect(items.at(-1)).toMatchObject({ kind: "refusal", event: "Resumed", rule: "line_is_live" });
  });

  test.each(["completed", "cancelled"])(
    "one that is %s is over: neither resumed nor done again, and told why",
    async (status) => {
      const { id } = await aFlow();
      if (status === "cancelled") await alice().cancelRun({ runId: id });
      else await end(api.store, id, await claim(api.store, id));
      const { actions } = await alice().showRun({ runId: id });
      expect(actions).toMatchObject({ resume: "retried_run_is_over", retry_as_new_run: "retried_run_is_over" });
      const asked = [
        () => alice().resumeRun({ runId: id }),
        () => olga().resumeRun({ runId: id }),
        () => alice().retryRun({ runId: id }),
      ];
      for (const ask of asked) {
        const problem = await problemOf(ask());
        expect(problem).toMatchObject({ status: 409, rule: "retried_run_is_over" });
        expect(problem.message).toContain(`A workflow that is ${status} is never resumed`);
      }
      const { items } = await alice().showTimeline({ runId: id });
      const refused = items.flatMap((entry) => (entry.kind === "refusal" ? [entry.event] : []));
      expect(refused).toEqual(["Resumed", "Resumed", "Submitted"]);
    },
  );

  test("one that is under way is refused with the reason", async () => {
    const { id } = await aFlow();
    await claim(api.store, id);
    expect((await olga().showRun({ runId: id })).actions.resume).toBe("not_paused");
    const problem = await problemOf(olga().resumeRun({ runId: id }));
    expect(problem).toMatchObject({ status: 409, rule: "not_paused" });
    expect(problem.message).toContain("The run is not paused.");
  });

  test("a run of an agent that has failed is done again, not resumed", async () => {
    const { id } = await aRun(api);
    await fail(id);
    expect((await alice().showRun({ runId: id })).actions).toMatchObject({
      resume: "not_yours_to_raise",
      retry_as_new_run: null,
    });
    expect(await problemOf(olga().resumeRun({ runId: id }))).toMatchObject({ status: 409, rule: "run_ended" });
  });
});

describe("letting a workflow's run go on in another version", () => {
  test("stores an operator's word for whoever works on it next", async () => {
    const { id } = await aFlow();
    await registerAgent(api.store, { ...FLOW, version: "2", kind: "workflow", tools: [] });
    expect(await olga().migrateRun({ runId: id, version: "2" })).toMatchObject({ id, agent: { version: "1" } });
    const { unread } = (await loadRun(api.store, stored(id))) ?? {};
    expect(unread).toMatchObject([{ body: { kind: "migration", version: "2", by: "olga" } }]);
  });

  test("is refused for a version that nobody has, for an agent, for what has ended, and for requesters", async () => {
    const { id } = await aFlow();
    const unknown = await problemOf(olga().migrateRun({ runId: id, version: "9" }));
    expect(unknown).toMatchObject({ status: 422, code: "agent_unknown" });
    expect(await problemOf(alice().migrateRun({ runId: id, version: "2" }))).toMatchObject({ status: 403 });
    const agents = await aRun(api);
    const agent = await problemOf(olga().migrateRun({ runId: agents.id, version: AGENT.version }));
    expect(agent).toMatchObject({ status: 409, rule: "not_a_workflow" });
    await fail(id);
    const ended = await problemOf(olga().migrateRun({ runId: id, version: "1" }));
    expect(ended).toMatchObject({ status: 409, rule: "run_ended" });
  });
});
