import { Approval, Decided, Run, TimelineEntry, Worker } from "@holdpoint/protocol";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});
afterAll(async () => {
  await desk[Symbol.asyncDispose]();
});

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });

/** What a command printed with --json, as the api's own schema reads it. */
async function json<T>(schema: z.ZodType<T>, user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<T> {
  const { exitCode, out, err } = await as(user, ...argv, "--json");
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

const listOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next: z.string().nullable() });
const Page = z.object({ run: Run, timeline: z.array(TimelineEntry), said: z.object({ text: z.string() }).nullable() });

const submit = (goal: string) => json(Run, "alice", "runs", "submit", "clerk@1", goal);
const untilStatus = (runId: string, status: string) =>
  waitFor(
    async () => {
      const { run: found } = await json(Page, "alice", "runs", "show", runId);
      return found.status === status ? found : null;
    },
    { deadlineMs: 20_000, what: `${runId} to be ${status}` },
  );
const pendingOf = async (runId: string) => {
  const { items } = await json(listOf(Approval), "mona", "approvals", "list", "--run", runId, "--mine");
  const [approval] = items;
  if (approval === undefined) throw new Error("no approval request is pending");
  return approval;
};

describe("runs", () => {
  test("list, with every filter, as a table that fits", async () => {
    const waiting = await submit("pay the bill");
    await untilStatus(waiting.id, "waiting_approval");
    const { out } = await as("alice", "runs", "list", "--status", "waiting_approval,running");
    expect(out).toMatch(/^RUN +STATUS +WAITS FOR +UNTIL +SINCE +GOAL\n/);
    expect(out).toMatch(new RegExp(`${waiting.id} +waiting_approval +role:manager +in 23 h .*pay the bill`));
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);

    const ids = async (...filter: readonly string[]) => {
      const { items } = await json(listOf(Run), "alice", "runs", "list", ...filter);
      return items.map(({ id }) => id);
    };
    expect(await ids("--waiting-for", "role:manager")).toContain(waiting.id);
    expect(await ids("--waiting-for", "approvers", "--agent", "clerk@1")).toContain(waiting.id);
    expect(await ids("--waiting-for", "requester")).not.toContain(waiting.id);
    expect(await ids("--overdue")).toEqual([]);
    expect(await ids("--agent", "clerk@2")).toEqual([]);
  });

  test("list says that there are more than its limit", async () => {
    await submit("pay one");
    await submit("pay two");
    const { out } = await as("alice", "runs", "list", "--limit", "1");
    expect(out.trimEnd().split("\n")).toHaveLength(3);
    expect(out).toContain("there are more");
  });

  test("show says for whom it waits, until when, what was last and what is next", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { exitCode, out } = await as("alice", "runs", "show", id);
    expect(exitCode).toBe(0);
    expect(out).toMatch(new RegExp(`^${id} {2}waiting_approval\nWaits for approval of pay by manager since `));
    expect(out).toMatch(/\nWaiting for +manager|\nWaiting for +role:manager \(over limit\)/);
    expect(out).toMatch(/\nDeadline +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in 23 h\)/);
    expect(out).toMatch(/\nLast completed +model turn 1\n/);
    expect(out).toMatch(/\nNext +pay runs if it is approved/);
    expect(out).toMatch(/requester alice +Submitted +new → queued/);
  });

  test("cancel stops a run; again it is refused with 1, and the refusal is in the timeline", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const cancelled = await as("alice", "runs", "cancel", id, "--reason", "changed my mind");
    expect(cancelled).toMatchObject({ exitCode: 0, out: expect.stringMatching(/ {2}cancelled\n/) });
    const again = await as("alice", "runs", "cancel", id);
    expect(again).toMatchObject({ exitCode: 1, out: "", err: expect.stringContaining("Refused:") });
    const problem = await as("alice", "runs", "cancel", id, "--json");
    expect(JSON.parse(problem.err)).toMatchObject({ code: "refused", rule: "run_ended" });
    const { out } = await as("alice", "runs", "show", id);
    expect(out).toMatch(/requester alice +CancelRequested refused: run ended +cancelled/);
  });

  test("retry does an ended run again, once under one key", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    await as("alice", "runs", "cancel", id);
    const key = ["--idempotency-key", "again-1"];
    const first = await json(Run, "alice", "runs", "retry", id, ...key);
    expect(first).toMatchObject({ retryOf: id, goal: "pay the bill" });
    expect((await json(Run, "alice", "runs", "retry", id, ...key)).id).toBe(first.id);
  });

  test("decide is the operator's: refused to others, and the run ends as decided", async () => {
    const { id } = await submit("break it");
    const waiting = await untilStatus(id, "waiting_operator");
    expect(waiting.actions.abort).not.toBeNull();
    const { out } = await as("olga", "runs", "show", id);
    expect(out).toMatch(/\nNext +an operator decides \(retry, skip, abort, terminate\)/);
    const abort = ["runs", "decide", id, "abort", "--reason", "not needed any more"];
    expect(await as("alice", ...abort)).toMatchObject({ exitCode: 1 });
    expect(await json(Run, "olga", ...abort)).toMatchObject({ status: "cancelled" });
  });
});

describe("answer", () => {
  test("goes to the run that asked; a second one is refused", async () => {
    const { id } = await submit("ask first");
    const { hold } = await untilStatus(id, "waiting_input");
    expect((await as("alice", "runs", "show", id)).out).toMatch(/\nAgent says +Which order\?\n/);
    const answer = ["answer", id, "The last one", "--hold", String(hold)];
    expect(await as("alice", ...answer)).toMatchObject({ exitCode: 0 });
    const ended = await untilStatus(id, "completed");
    expect(ended.outcome).toEqual({ kind: "succeeded" });
    expect(await as("alice", ...answer)).toMatchObject({ exitCode: 1, err: expect.stringContaining("Refused:") });
  });
});

describe("approvals", () => {
  test("approve without hash and --yes only shows; with the hash it approves; a second one is refused", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request, argsHash } = await pendingOf(id);
    const shown = await as("mona", "approvals", "approve", request);
    expect(shown).toMatchObject({ exitCode: 2, err: expect.stringContaining(`--hash ${argsHash}`) });
    expect(shown.err).toContain('amount  "120.00"');
    const wrong = await as("mona", "approvals", "approve", request, "--hash", "0".repeat(64));
    expect(wrong).toMatchObject({ exitCode: 1, err: expect.stringContaining("other arguments") });

    const approved = await as("mona", "approvals", "approve", request, "--hash", argsHash, "--note", "fine");
    expect(approved).toMatchObject({ exitCode: 0, out: expect.stringContaining(`${request}: approved by mona`) });
    await untilStatus(id, "completed");
    const late = await as("max", "approvals", "approve", request, "--yes");
    expect(late).toMatchObject({ exitCode: 1, err: expect.stringContaining("the first decision counts") });
    const { timeline } = await json(Page, "alice", "runs", "show", id);
    expect(timeline).toContainEqual(expect.objectContaining({ kind: "refusal", rule: "already_decided" }));
    const { items } = await json(listOf(Approval), "mona", "approvals", "list", "--state", "spent", "--run", id);
    expect(items).toMatchObject([{ id: request, state: "spent", decidedBy: "mona", note: "fine" }]);
  });

  test("approve --yes approves what it has shown", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request, argsHash } = await pendingOf(id);
    const { exitCode, out } = await as("mona", "approvals", "approve", request, "--yes");
    expect(exitCode).toBe(0);
    expect(out).toContain(argsHash);
    expect(out).toContain(`${request}: approved by mona`);
  });

  test("reject needs a note, and the run goes on without the call", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request } = await pendingOf(id);
    expect(await as("mona", "approvals", "reject", request)).toMatchObject({ exitCode: 2 });
    const decided = await json(Decided, "mona", "approvals", "reject", request, "--note", "too much");
    expect(decided).toMatchObject({ approval: { state: "rejected", note: "too much" }, repeated: false });
    await untilStatus(id, "completed");
  });

  test("list and show", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request } = await pendingOf(id);
    const { out } = await as("mona", "approvals", "list");
    expect(out).toMatch(new RegExp(`${request} +pending +pay +alice +manager +in 23 h +{"amount":"120.00"}`));
    expect((await as("mona", "approvals", "show", request)).out).toMatch(/\nDeadline .*; then: reject\n/);
    expect(await json(Approval, "mona", "approvals", "show", request)).toMatchObject({ id: request });
    expect((await as("mona", "approvals", "list", "--run", id, "--state", "expired")).out).toBe(
      "no approval requests\n",
    );
  });
});

describe("workers", () => {
  test("are the operator's to see", async () => {
    const { out } = await as("olga", "workers", "--gone");
    expect(out).toMatch(/wrk_\w+ +\S+:\d+ +working +\d of 4 .*clerk@1\n/);
    const { items } = await json(listOf(Worker), "olga", "workers");
    expect(items).toHaveLength(1);
    expect(await as("alice", "workers")).toMatchObject({ exitCode: 1, err: expect.stringContaining("operators") });
  });
});

describe("what is not there", () => {
  test.each([
    ["runs", "show", `run_${"0".repeat(26)}`],
    ["runs", "cancel", `run_${"0".repeat(26)}`],
    ["approvals", "show", `apr_${"0".repeat(26)}`],
  ])("%s %s ends with 3", async (...argv) => {
    expect(await as("alice", ...argv)).toMatchObject({ exitCode: 3, out: "", err: expect.stringContaining("no such") });
  });

  test("a malformed id is wrong usage", async () => {
    expect(await as("alice", "runs", "show", "4411")).toMatchObject({ exitCode: 2 });
  });

  test("an unknown token is told as such", async () => {
    const { exitCode, err } = await run(["runs", "list"], {
      env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: "nobody-at-all" },
    });
    expect(exitCode).toBe(2);
    expect(err).toContain("HOLDPOINT_TOKEN");
  });
});
