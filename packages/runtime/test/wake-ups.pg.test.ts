import { newId } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { aDesk, ask, aTool } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const eventsOf = async (runId: string) =>
  (await fleet.rows("transitions", runId, "seq")).map(({ event }) => String(event));

test("one wake-up five times over, at two workers, is one execution; one that is late or wrong moves nothing", async () => {
  const find = aTool("find", { effect: "read" });
  const agent = aDesk([{ calls: [ask("find")] }, { text: "done" }], [find]);
  const workers = [await fleet.start(agent), await fleet.start(agent)];
  const run = await fleet.submitQuietly(agent);
  const wakeUp = { agent, runId: run.id, version: run.version };
  await Promise.all([0, 1, 2, 3, 4].map((sweep) => fleet.publisher.publish([wakeUp], { sweep })));
  await fleet.untilStatus(run.id, "completed");
  expect(find.executed).toHaveLength(1);
  expect(await eventsOf(run.id)).toEqual(["Submitted", "Claimed", "Ended"]);

  // Of what has ended long ago, of a version that never was, and of a run that is not there.
  const next = await fleet.submitQuietly(agent);
  const late = [wakeUp, { ...wakeUp, version: 99 }, { ...wakeUp, runId: newId() }];
  expect(await fleet.publisher.publish(late, { sweep: 5 })).toMatchObject({ published: 3 });
  await fleet.publisher.publish([{ agent, runId: next.id, version: 77 }]);
  await fleet.untilStatus(next.id, "completed");
  await waitFor(async () => (await fleet.publisher.waiting(agent)) === 0, {
    deadlineMs: 10_000,
    what: "an empty queue",
  });
  for (const worker of workers) await worker.drain(5_000);
  expect(await eventsOf(run.id)).toEqual(["Submitted", "Claimed", "Ended"]);
  expect(await eventsOf(next.id)).toEqual(["Submitted", "Claimed", "Ended"]);
  expect(find.executed).toHaveLength(2); // once in each run
});
