import { Run } from "@holdpoint/protocol";
import { bindWorkflow, defineAgent, defineChildRuns } from "@holdpoint/runtime";
import { registerAgent } from "@holdpoint/store";
import { scriptedModel, waitFor } from "@holdpoint/testkit";
import { defineWorkflow } from "@holdpoint/workflow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

const HELPER = { name: "helper", version: "1" };

/** Does what it is told, or asks where the goal says so. */
const helper = defineAgent({
  ...HELPER,
  model: scriptedModel([
    ({ prompt }) => ({ text: JSON.stringify(prompt).includes("and ask") ? "Which one?" : "It is done." }),
  ]),
  instructions: "You help.",
  tools: [],
  complete: (reply) => (reply.endsWith("?") ? null : { kind: "succeeded" }),
});

const boss = defineAgent({
  name: "boss",
  version: "1",
  model: scriptedModel([{ calls: [{ tool: "delegate", input: {} }] }, { text: "All done." }]),
  instructions: "You delegate.",
  tools: [
    defineChildRuns({
      name: "delegate",
      description: "Has others do it",
      input: z.object({}),
      runs: () => [
        { agent: HELPER, goal: "do it" },
        { agent: HELPER, goal: "do it and ask" },
      ],
    }),
  ],
  complete: () => ({ kind: "succeeded" }),
});

/** Fails at its second node, which brings something else than it says. */
const parcel = bindWorkflow(
  defineWorkflow({
    name: "parcel",
    version: "1",
    input: z.object({ order: z.string().regex(/^ord_\d+$/) }),
    nodes: {
      pack: { kind: "agent", agent: HELPER, goal: ({ input }) => `pack ${input.order}`, output: z.string() },
      weigh: {
        kind: "agent",
        agent: HELPER,
        after: ["pack"],
        goal: () => "weigh it",
        output: z.object({ grams: z.number() }),
      },
    },
  }),
  { onFailure: "fail" },
);

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk([helper, boss, parcel]);
  await registerAgent(desk.store, { name: "idle", version: "1", kind: "workflow", tools: [] });
});
afterAll(() => desk[Symbol.asyncDispose]());

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });

async function json<T>(schema: z.ZodType<T>, ...argv: readonly string[]): Promise<T> {
  const { exitCode, out, err } = await as("alice", ...argv, "--json");
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

const Page = z.object({ run: Run, children: z.object({ items: z.array(Run) }) });
const Runs = z.object({ items: z.array(Run) });

const untilStatus = (runId: string, status: string) =>
  waitFor(
    async () => {
      const page = await json(Page, "runs", "show", runId);
      return page.run.status === status ? page : null;
    },
    { deadlineMs: 20_000, what: `${runId} to be ${status}` },
  );

describe("runs that start others", () => {
  test("are shown as a tree, and by `runs children` and `runs list --parent`", async () => {
    const { id } = await json(Run, "runs", "submit", "boss@1", "do it");
    const asking = await waitFor(
      async () => {
        const { items } = await json(Runs, "runs", "children", id);
        return items.find(({ status }) => status === "waiting_input") ?? null;
      },
      { deadlineMs: 20_000, what: "a child to ask" },
    );
    // What it waits for is what has not ended by now, whatever it was when it began to wait.
    const { children } = await waitFor(
      async () => {
        const page = await json(Page, "runs", "show", id);
        return page.run.waitingFor?.principal === asking.id ? page : null;
      },
      { deadlineMs: 20_000, what: "the parent to wait for that child alone" },
    );
    const done = children.items.find((child) => child.id !== asking.id);
    expect((await json(Runs, "runs", "list", "--parent", id)).items.map((child) => child.id)).toEqual([
      asking.id,
      done?.id,
    ]);

    const shown = await as("alice", "runs", "show", id);
    expect(shown.out).toContain(`Waits for ${asking.id} (delegate) since`);
    expect(shown.out).toMatch(new RegExp(`Next +it goes on at the end of ${asking.id}\n`));
    expect(shown.out).toMatch(
      new RegExp(
        `\n${id} {2}this run\n└─ ${done?.id} {2}completed +helper@1 succeeded\n└─ ${asking.id} {2}waiting_input +helper@1 +alice`,
      ),
    );
    for (const line of shown.out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    const below = await as("alice", "runs", "show", asking.id);
    expect(below.out).toMatch(new RegExp(`\n${id}\n└─ ${asking.id} {2}this run, started by delegate \\(number 2\\)\n`));
    const table = await as("alice", "runs", "children", id);
    expect(table.out).toMatch(/^RUN +STATUS +AGENT +BY CALL +WAITS FOR, OR ENDED WITH\n/);
    expect((await as("alice", "runs", "children", asking.id)).out).toBe("no child runs\n");

    // Who stops the one stops the other.
    await as("alice", "runs", "cancel", id);
    const stopped = await waitFor(
      async () => {
        const { items } = await json(Runs, "runs", "children", id);
        return items.find((child) => child.id === asking.id && child.status === "cancelled") ?? null;
      },
      { deadlineMs: 20_000, what: "the child to stop" },
    );
    expect(stopped.endReason).not.toBeNull();
  });
});

describe("a workflow", () => {
  const input = ["--input", '{"order":"ord_1"}'];

  test("is given its input and its instance key; what is wrong with them is told", async () => {
    const key = ["--instance-key", "ord_7"];
    const wrong = await as("alice", "runs", "submit", "parcel@1", "send it", "--input", '{"order":"7"}');
    expect(wrong).toMatchObject({ exitCode: 2, out: "", err: expect.stringContaining("body.input: ") });
    const noJson = await as("alice", "runs", "submit", "parcel@1", "send it", "--input", "{order}");
    expect(noJson).toMatchObject({ exitCode: 2, err: expect.stringContaining("--input must be JSON") });
    const { id } = await json(Run, "runs", "submit", "parcel@1", "send it", ...input, ...key);
    const failed = await untilStatus(id, "failed");
    expect(failed.run).toMatchObject({ instanceKey: "ord_7", input: { order: "ord_1" } });
  });

  test("whose instance is live is refused with 1, and told which run it is", async () => {
    const key = ["--instance-key", "ord_8", "--json"];
    const idle = ["runs", "submit", "idle@1", "wait", "--input", "{}", ...key];
    const first = Run.parse(JSON.parse((await as("alice", ...idle)).out));
    const again = await as("alice", ...idle);
    expect(again).toMatchObject({ exitCode: 1, out: "" });
    expect(JSON.parse(again.err)).toMatchObject({
      rule: "instance_is_live",
      detail: expect.stringContaining(first.id),
    });
    // Nobody works for it, so that it is cancelled at once, and never resumed.
    await as("alice", "runs", "cancel", first.id);
    const refused = await as("alice", "runs", "resume", first.id);
    expect(refused).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("A workflow that is cancelled is never"),
    });
  });

  test("that has failed says what was completed, and goes on as another run which is shown", async () => {
    const { id } = await json(Run, "runs", "submit", "parcel@1", "send it", ...input);
    await untilStatus(id, "failed");
    const shown = await as("alice", "runs", "show", id);
    expect(shown.out).toMatch(/Last completed +weigh/);
    expect(shown.out).toMatch(
      /Next +nothing by itself; `runs resume` makes a run that goes on with what was completed/,
    );
    const resumed = await json(Run, "runs", "resume", id);
    expect(resumed).toMatchObject({ retryOf: id, input: { order: "ord_1" } });
    await untilStatus(resumed.id, "failed");
    // The node that was completed is not executed again.
    const { items } = await json(Runs, "runs", "children", resumed.id);
    expect(items.map(({ startedBy }) => startedBy?.tool)).not.toContain("pack");
  });
});
