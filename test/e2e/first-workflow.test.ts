import { expect, test } from "vitest";
import { ALICE, openFleet } from "../../packages/runtime/test/fleet.ts";
import { createSession, submitRun } from "../../packages/store/src/index.ts";
import { openAgents } from "./first-workflow.ts";

async function offerFor(people: number, fleet: Awaited<ReturnType<typeof openFleet>>): Promise<string> {
  const [workflow] = (await openAgents()).agents;
  if (workflow === undefined) throw new Error("the module gives no workflow");
  await fleet.start(workflow);
  const { id: sessionId } = await createSession(fleet.store, ALICE.id);
  const input = { customer: "kim@example.com", people };
  const submitted = await submitRun(fleet.store, { sessionId, agent: workflow, goal: "an offer", input, actor: ALICE });
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  await fleet.wake(submitted.run);
  return submitted.run.id;
}

test("the README's first workflow prices a room, waits for a manager, and sends the offer", async () => {
  await using fleet = await openFleet();
  const id = await offerFor(4, fleet);
  await fleet.untilStatus(id, "waiting_approval");
  await fleet.decide(id, "approve");
  const ended = await fleet.untilStatus(id, "completed");
  expect(ended.state.outcome).toEqual({ kind: "succeeded" });
  expect(ended.result).toEqual({ sentTo: "kim@example.com" });
});

test("the README's first workflow is blocked by its gate above the limit", async () => {
  await using fleet = await openFleet();
  const id = await offerFor(150, fleet);
  const ended = await fleet.untilStatus(id, "completed");
  expect(ended.state.outcome).toMatchObject({ kind: "blocked", step: "limit" });
});
