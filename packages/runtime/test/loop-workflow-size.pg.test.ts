import { hashArgs, type Store } from "@holdpoint/store";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, type WorkflowAgent } from "../src/index.ts";
import { aGraphName, aRead, ORDER, submitGraph } from "./a-graph.ts";
import { faultyStore } from "./faulty-store.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const EXECUTIONS = 5_000;
/** How many of them the worker makes; the others are rows that were there before. */
const LAST = 10;

/** A workflow that maps a list over a read. */
function aLongMap(items: number) {
  const look = aRead("look", async () => "seen");
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    limits: { items },
    nodes: {
      each: {
        kind: "tool",
        tool: { name: "look" },
        forEach: () => Array.from({ length: items }, (_, index) => index),
        item: z.number(),
        input: ({ item }) => ({ order: `${item}` }),
        output: z.string(),
      },
    },
    result: ({ need }) => need("each").length,
  });
  return { look, agent: bindWorkflow(workflow, { tools: [look.tool] }) };
}

/** Stores what a worker would have stored by the time that so many items are done. */
async function insertHistory(
  { pool, tenantId }: Store,
  runId: string,
  { items, done }: { items: number; done: number },
) {
  const list = Array.from({ length: items }, (_, index) => index);
  const calls = list.slice(0, done).map((item) => {
    const args = { order: `${item}` };
    return { item, args: JSON.stringify(args), argsHash: hashArgs("look", args) };
  });
  await pool.query(HISTORY, [tenantId, runId, JSON.stringify(list), JSON.stringify(calls)]);
  // Rows that come over hours are known to the planner by then.
  await pool.query("analyze holdpoint.steps, holdpoint.calls, holdpoint.runs");
}

const HISTORY = `
with calls as materialized (
  select (lpad(to_hex(c.item + 1), 8, '0') || '-0000-7000-8000-000000000000')::uuid as id, c.*
  from jsonb_to_recordset($4::jsonb) as c(item int, args text, "argsHash" text)
),
called as (
  insert into holdpoint.calls (tenant_id, run_id, id, turn, ordinal, tool_call_id, tool, args, args_hash, operation_id,
    effect, verdict, timeout_ms, retries, throttled_for_ms, service, at)
  select $1, $2, id, item + 2, 0, 'each/1/' || item, 'look', args, "argsHash", 'op_' || item, '{"kind":"read"}',
    '{"kind":"allowed"}', 10000, 1, 60000, 'look', holdpoint.clock() from calls
),
bodies as (
  select 1 as seq, jsonb_build_object('kind', 'nodes_started', 'turn', 1, 'callIds', '[]'::jsonb, 'nodes',
    jsonb_build_array(jsonb_build_object('id', gen_random_uuid(), 'node', 'each', 'round', 1, 'item', null,
      'settled', jsonb_build_object('state', 'done', 'output', $3::jsonb)))) as body
  union all
  select 2 * item + 2, jsonb_build_object('kind', 'nodes_started', 'turn', item + 2, 'callIds', jsonb_build_array(id),
    'nodes', jsonb_build_array(jsonb_build_object('id', id, 'node', 'each', 'round', 1, 'item', item, 'settled', null)))
  from calls
  union all
  select 2 * item + 3, jsonb_build_object('kind', 'tool_result', 'callId', id, 'result', 'succeeded', 'output', 'seen') from calls
),
stepped as (
  insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at)
  select $1, $2, seq, 0, body->>'kind', body, holdpoint.clock() from bodies
)
update holdpoint.runs r set step_seq = n.steps,
  checkpoint = jsonb_set(jsonb_set(r.checkpoint, '{stepSeq}', to_jsonb(n.steps)), '{turn}', to_jsonb(n.turns))
from (select 1 + 2 * count(*) as steps, 1 + count(*) as turns from calls) n where r.id = $2`;

/** What the worker sends while it makes the last items: the statements, and their bytes without the claim's answer. */
async function measure(agent: WorkflowAgent, items: number) {
  const first = await fleet.start(agent);
  await first.drain(1_000);
  const submitted = await submitGraph(fleet, agent);
  if (submitted.result !== "submitted") throw new Error(submitted.result);
  const { id } = submitted.run;
  await insertHistory(fleet.store, id, { items, done: items - LAST });
  const sent: { readonly verb: string; readonly bytes: number }[] = [];
  const store = faultyStore(fleet.store, async ({ verb, values, send }) => {
    if (verb === "commit_steps" || verb === "transition" || verb === "load_run") {
      sent.push({ verb, bytes: JSON.stringify(values).length });
    }
    return send();
  });
  const worker = await fleet.start(agent, { store });
  await fleet.wake((await fleet.load(id)).run);
  const ended = await fleet.untilStatus(id, "completed");
  await worker.drain(1_000);
  const { rows } = await fleet.store.pool.query(
    "select octet_length(checkpoint::text) as checkpoint, octet_length(to_jsonb(r)::text) as row from holdpoint.runs r where id = $1",
    [id],
  );
  const bytes = sent.reduce((sum, each) => sum + each.bytes, 0);
  return { ended, verbs: sent.map(({ verb }) => verb), bytes, checkpoint: rows[0].checkpoint, row: rows[0].row };
}

test("a workflow of 5 000 executions has the checkpoint, the row and the work for each of a short one", async () => {
  const [short, long] = [aLongMap(2 * LAST), aLongMap(EXECUTIONS)];
  const small = await measure(short.agent, 2 * LAST);
  const large = await measure(long.agent, EXECUTIONS);
  expect(large.ended.result).toBe(EXECUTIONS);
  expect([short.look.executed.length, long.look.executed.length]).toEqual([LAST, LAST]);
  expect(large.verbs).toEqual(small.verbs);
  // One commit for the start of each, and one for its result.
  expect(large.verbs.filter((verb) => verb === "commit_steps")).toHaveLength(2 * LAST);
  expect(large.bytes).toBeLessThan(small.bytes * 1.1);
  expect(large.checkpoint).toBeLessThanOrEqual(2_048);
  expect(large.row).toBeLessThan(small.row + 100);
}, 60_000);
