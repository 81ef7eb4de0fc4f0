import { expect, test } from "vitest";
import { openFleet } from "../../packages/runtime/test/fleet.ts";
import { openAgents } from "./first-agent.ts";

test("the README's first agent finds a room, waits for a manager, and books it", async () => {
  await using fleet = await openFleet();
  const [agent] = (await openAgents({})).agents;
  if (agent === undefined) throw new Error("the module gives no agent");
  await fleet.start(agent);
  const run = await fleet.submit(agent, "A room for four people on Friday, please");
  await fleet.untilStatus(run.id, "waiting_approval");
  await fleet.decide(run.id, "approve");
  const ended = await fleet.untilStatus(run.id, "completed");
  expect(ended.state.outcome).toEqual({ kind: "succeeded" });
});
