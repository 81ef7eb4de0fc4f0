import { createHash } from "node:crypto";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow, defineTool } from "../src/index.ts";
import { aGraphName, aRead, beginGraph, childrenOf, lastReason, ORDER, untilHeld } from "./a-graph.ts";
import { aDesk, aTool } from "./desk.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const LARGE = Array.from({ length: 3_000 }, (_, place) => ({ place, name: `order ${place} €` }));
const ORDERS = z.array(z.object({ place: z.number(), name: z.string() }));
const digest = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** A workflow of two nodes whose second has to see all that the first has brought. */
function aReader(first: ReturnType<typeof aRead>["tool"]) {
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      collect: { kind: "tool", tool: { name: first.name }, input: ({ input }) => input, output: ORDERS },
      count: {
        kind: "tool",
        after: ["collect"],
        tool: { name: "count" },
        input: ({ need }) => ({ order: digest(need("collect")) }),
        output: z.string(),
      },
    },
    result: ({ need }) => ({ digest: need("count"), orders: need("collect") }),
  });
  const count = aRead("count", async (_times, _context, { order }) => order);
  return { count, workflow, agent: bindWorkflow(workflow, { tools: [first, count.tool] }) };
}

async function artifactsOf(runId: string): Promise<readonly string[]> {
  return (await fleet.rows("artifact_uses", runId, "sha256")).map(({ sha256 }) => String(sha256));
}

describe("what a node brings and is too large for the history", () => {
  test("is an artifact with a reference; those after it are given the whole, whoever goes on with the run", async () => {
    const collect = aRead("collect", async () => LARGE);
    const { count, agent } = aReader(collect.tool);
    const first = await fleet.start(agent);
    await first.drain(1_000);
    const id = await beginGraph(fleet, agent);
    await fleet.start(agent);
    const ended = await fleet.untilStatus(id, "completed");
    expect(count.executed).toHaveLength(1);
    const { steps } = await fleet.load(id);
    const [collected, counted] = steps.flatMap(({ body }) => (body.kind === "tool_result" ? [body] : []));
    expect(counted?.output).toBe(digest(LARGE));
    expect(collected?.output).toMatch(
      /\[Cut: this is the beginning of \d+ bytes; the whole is artifact [0-9a-f]{64}\.\]$/,
    );
    expect(JSON.stringify(steps).length).toBeLessThan(40_000);
    expect(await artifactsOf(id)).toContain(collected?.artifact);
    // What the run itself brings home is one as well.
    const { rows } = await fleet.store.pool.query("select result_artifact from holdpoint.runs where id = $1", [id]);
    expect(await artifactsOf(id)).toContain(rows[0]?.result_artifact);
    expect(JSON.stringify(ended.result).length).toBeLessThan(32_768);
  });

  test("goes whole from a child workflow to its parent, who keeps it as its own", async () => {
    const collect = aRead("collect", async () => LARGE);
    const { agent: inner } = aReader(collect.tool);
    const outer = bindWorkflow(
      defineWorkflow({
        name: aGraphName(),
        version: "1",
        input: ORDER,
        nodes: {
          below: {
            kind: "workflow",
            workflow: { name: inner.name, version: inner.version },
            input: ({ input }) => input,
            output: z.object({ digest: z.string(), orders: ORDERS }),
          },
        },
        result: ({ need }) => [need("below").digest, digest(need("below").orders)],
      }),
    );
    await fleet.start(inner);
    await fleet.start(outer);
    const id = await beginGraph(fleet, outer);
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended.result).toEqual([digest(LARGE), digest(LARGE)]);
    const [child] = await childrenOf(fleet, id);
    expect(await artifactsOf(id)).toEqual([child?.resultArtifact]);
  });

  test("goes whole from an agent, as the text that it is", async () => {
    const text = "a long letter ".repeat(10_000);
    const clerk = aDesk([{ text }], []);
    const workflow = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        write: {
          kind: "agent",
          agent: { name: clerk.name, version: clerk.version },
          goal: () => "write",
          output: z.string(),
        },
      },
      result: ({ need }) => need("write").length,
    });
    const agent = bindWorkflow(workflow);
    await fleet.start(clerk);
    await fleet.start(agent);
    const ended = await fleet.untilStatus(await beginGraph(fleet, agent), "completed");
    expect(ended.result).toBe(text.length);
  });

  test("and for the database is not passed on in part: a person is told", async () => {
    const collect = aRead("collect", async () => Array.from({ length: 9 }, () => "x".repeat(2 ** 20)));
    const { count, agent } = aReader(collect.tool);
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    await untilHeld(fleet, id, "node_failed");
    expect(await lastReason(fleet, id)).toMatch(/^node_failed: what it brought is too large/);
    expect(count.executed).toEqual([]);
  });

  test("and is not there any more holds its node, rather than that the rest goes on without it", async () => {
    const collect = aRead("collect", async () => LARGE);
    const asked = defineWorkflow({
      name: aGraphName(),
      version: "1",
      input: ORDER,
      nodes: {
        collect: { kind: "tool", tool: { name: "collect" }, input: ({ input }) => input, output: ORDERS },
        sign: { kind: "human", after: ["collect"], question: () => "All?", approvers: { roles: ["manager"] } },
      },
    });
    const agent = bindWorkflow(asked, { tools: [collect.tool] });
    await fleet.start(agent);
    const id = await beginGraph(fleet, agent);
    await fleet.untilStatus(id, "waiting_approval");
    const [hash] = await artifactsOf(id);
    const { rows } = await fleet.store.pool.query("delete from holdpoint.artifacts where sha256 = $1 returning *", [
      hash,
    ]);
    await fleet.decide(id, "approve");
    await untilHeld(fleet, id, "node_failed");
    const [{ tenant_id, sha256, size_bytes, media_type, content, created_at }] = rows;
    await fleet.store.pool.query(
      `insert into holdpoint.artifacts (tenant_id, sha256, size_bytes, media_type, content, created_at)
       values ($1, $2, $3, $4, $5, $6)`,
      [tenant_id, sha256, size_bytes, media_type, content, created_at],
    );
    await fleet.order(id, { choice: "retry" });
    await fleet.untilStatus(id, "completed");
  });
});

test("dates, bigints and what looks like them come to the nodes after it as plain JSON", async () => {
  const look = defineTool({
    name: "look",
    description: "Looks",
    input: ORDER,
    effect: "read",
    execute: async () => ({ at: new Date(0), amount: 2n ** 60n, note: { $date: "no date" } }),
  });
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      look: {
        kind: "tool",
        tool: { name: "look" },
        input: ({ input }) => input,
        output: z.object({ at: z.string(), amount: z.string(), note: z.record(z.string(), z.string()) }),
      },
      after: {
        kind: "tool",
        after: ["look"],
        tool: { name: "after" },
        input: ({ need }) => ({ order: JSON.stringify(need("look")) }),
        output: z.string(),
      },
    },
    result: ({ need }) => need("after"),
  });
  const after = aTool("after", { effect: "read", behave: async (_times, _context, { order }) => order });
  const agent = bindWorkflow(workflow, { tools: [look, after.tool] });
  await fleet.start(agent);
  const { result } = await fleet.untilStatus(await beginGraph(fleet, agent), "completed");
  expect(JSON.parse(String(result))).toEqual({
    at: "1970-01-01T00:00:00.000Z",
    amount: "1152921504606846976",
    note: { $date: "no date" },
  });
});
