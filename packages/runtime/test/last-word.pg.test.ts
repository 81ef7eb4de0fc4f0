// The reply that ends a run is stored with the end; what keeps that from being done must not lose the reply, nor end a run
// that it has not seen the last of.

import { findViolations } from "@holdpoint/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { aDesk } from "./desk.ts";
import { type Fleet, openFleet, story } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

test("a reply and the end that it leads to are one statement", async () => {
  const agent = aDesk([{ text: "done" }], []);
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  await fleet.untilStatus(id, "completed");
  const { steps } = await fleet.load(id);
  const transitions = await fleet.rows("transitions", id, "seq");
  expect(steps.map(({ body }) => body.kind)).toEqual(["model_reply"]);
  expect(transitions.map(({ event }) => event)).toEqual(["Submitted", "Claimed", "Ended"]);
  expect(new Date(steps[0]?.atMs ?? 0)).toEqual(transitions.at(-1)?.at);
});

test("where an agent fails to say what its run brings home, the reply is kept, and a person is told", async () => {
  const agent = aDesk([{ text: "done" }], [], {
    result: () => {
      throw new Error("no result");
    },
  });
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  const held = await fleet.untilStatus(id, "waiting_operator");
  expect(held.state.waitingFor?.reason).toBe("agent_error");
  expect(story(await fleet.load(id))).toEqual(["model_reply"]);
  expect(agent.model.asked).toHaveLength(1);
});

test("a reply that has not seen the last step ends nothing: the model is asked again", async () => {
  const submitted = Promise.withResolvers<string>();
  const meanwhile = async () => {
    if (agent.model.asked.length === 1) await fleet.store.pool.query(STEP_IN_BETWEEN, [await submitted.promise]);
    return { text: `done ${agent.model.asked.length}` };
  };
  const agent = aDesk([meanwhile], []);
  await fleet.start(agent);
  const { id } = await fleet.submit(agent);
  submitted.resolve(id);
  await fleet.untilStatus(id, "completed");
  expect(story(await fleet.load(id))).toEqual(["no_answer", "model_reply"]);
  expect(agent.model.asked).toHaveLength(2);
  expect(await findViolations(fleet.store)).toEqual([]);
});

/** As late evidence does: a step of somebody else, recorded with a transition that leaves the status as it is. */
const STEP_IN_BETWEEN = `
  with moved as (
    update holdpoint.runs set version = version + 1, step_seq = step_seq + 1,
      checkpoint = jsonb_set(checkpoint, '{stepSeq}', to_jsonb(step_seq + 1))
    where id = $1 returning *),
  logged as (
    insert into holdpoint.transitions (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, at)
    select tenant_id, id, version, status, status, 'FactArrived', 'worker', 'somebody', epoch, updated_at from moved)
  insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at)
  select tenant_id, id, step_seq, epoch, 'no_answer', '{"kind": "no_answer"}', updated_at from moved`;
