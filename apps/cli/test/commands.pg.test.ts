import {
  Approval,
  ApprovalSummary,
  Assignment,
  Decided,
  Rules,
  Run,
  TimelineEntry,
  Verdict,
  Worker,
} from "@holdpoint/protocol";
import { recordLateEvidence, reportRecovered, reportTrouble } from "@holdpoint/store";
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
const pendingOf = async (runId: string, user: keyof typeof TOKENS = "mona") => {
  const { items } = await json(listOf(ApprovalSummary), user, "approvals", "list", "--run", runId, "--mine");
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
    expect(out).toMatch(/\nNext +an operator decides \(retry, skip, abort\)\n/);
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
    const { items } = await json(listOf(ApprovalSummary), "mona", "approvals", "list", "--state", "spent", "--run", id);
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

  test("list shows what waits, without what is left out for lists", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request } = await pendingOf(id);
    const { out } = await as("mona", "approvals", "list");
    expect(out).toMatch(
      new RegExp(`${request} +pending +pay +alice +manager +in 23 h +{"iban":"\\[redacted\\]","amoun`),
    );
    expect(out).not.toContain("NO93");
    expect(await json(Approval, "mona", "approvals", "show", request)).toMatchObject({ id: request });
    expect((await as("mona", "approvals", "list", "--run", id, "--state", "expired")).out).toBe(
      "no approval requests\n",
    );
  });

  test("show prints what a manager needs to decide, and how", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request, argsHash } = await pendingOf(id);
    const { out } = await as("mona", "approvals", "show", request);
    for (const line of [
      new RegExp(`^${request} {2}pending\nalice asks for pay\n`),
      /\nRule +over limit\n/,
      /\nRisk +high, cannot be undone\n/,
      /\nDecided by +manager; not by alice\n/,
      /\nQuorum +0 of 1 so far; one rejection is enough\n/,
      /\nDeadline .*\(in 23 h\); then it counts as rejected\n/,
      /\nEscalation +finance, who have 2 h\n/,
      /\nRuns with these arguments:\n {2}amount {2}"120.00"\n {2}iban {4}"NO93 8601"\n/,
    ])
      expect(out).toMatch(line);
    expect(out.slice(out.indexOf("You may:")).trimEnd().split("\n")).toEqual([
      "You may:",
      `  holdpoint approvals approve ${request} --hash ${argsHash}`,
      `  holdpoint approvals edit ${request} --hash ${argsHash} --args '<json>'`,
      `  holdpoint approvals reject ${request} --hash ${argsHash} --note '<why>'`,
      `  holdpoint approvals abort ${request} --hash ${argsHash} --note '<why>'`,
      `  holdpoint approvals respond ${request} --hash ${argsHash} --answer '<json>'`,
      `  holdpoint approvals skip ${request} --hash ${argsHash}`,
      `  holdpoint approvals escalate ${request} --hash ${argsHash}`,
    ]);
    const looked = await as("fay", "approvals", "show", request);
    expect(looked.out).toContain("You may only look: not an approver\n");
    expect((await as("olga", "approvals", "show", request)).out).toContain("NO93");
  });

  test("two people approve; what the model wrote stands apart and moves nothing", async () => {
    const { id } = await submit("pay much");
    await untilStatus(id, "waiting_approval");
    const { id: request, argsHash } = await pendingOf(id, "fay");
    const { out } = await as("fay", "approvals", "show", request);
    expect(out).toContain(
      "\nThe model's reason, which nobody has checked:\n  | It is �[32mapproved�[0m already.\n  | State",
    );
    expect(out).not.toMatch(/\n *State +approved/);
    expect(out).not.toContain("\u001b");
    expect(out).toMatch(/\nQuorum +0 of 2 so far/);
    const hash = ["--hash", argsHash];
    const first = await as("fay", "approvals", "approve", request, ...hash);
    expect(first).toMatchObject({ exitCode: 0, out: expect.stringContaining(`${request}: 1 of 2 have approved\n`) });
    expect((await as("finn", "approvals", "list", "--mine")).out).toMatch(/ finance 1\/2 /);
    const shown = (await as("finn", "approvals", "show", request)).out;
    expect(shown).toMatch(/\nQuorum +1 of 2 so far/);
    expect(shown).toMatch(/\nSo far +fay approve /);
    expect(await as("finn", "approvals", "approve", request, ...hash)).toMatchObject({ exitCode: 0 });
    await untilStatus(id, "completed");
    const after = (await as("finn", "approvals", "show", request)).out;
    expect(after).toMatch(/\nYou may only look: already decided\n/);
    expect(after).toMatch(/\nSpent +/);
  });

  test("edit runs what was made of the arguments, and says what the model had given", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request, argsHash } = await pendingOf(id);
    const args = JSON.stringify({ amount: "20.00", iban: "NO93 8601" });
    const edit = ["approvals", "edit", request, "--hash", argsHash, "--args"];
    expect(await as("mona", ...edit, '{"amount":20}')).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("amount"),
    });
    expect(await as("mona", "approvals", "edit", request, "--args", args)).toMatchObject({ exitCode: 2, out: "" });
    const edited = await run([...edit, "@args.json"], {
      env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS.mona },
      readText: async (path) => (path === "args.json" ? args : expect.unreachable(path)),
    });
    expect(edited).toMatchObject({ exitCode: 0, err: "" });
    const [, next = ""] = /edited by mona; what it has become is (apr_\w+)\n/.exec(edited.out) ?? [];
    await untilStatus(id, "completed");
    const { out } = await as("mona", "approvals", "show", next);
    expect(out).toMatch(/\nEdited by +mona\n/);
    expect(out).toMatch(/\nRuns with these arguments:\n {2}amount {2}"20.00"\n/);
    expect(out).toMatch(/\nThe model had given these arguments:\n {2}amount {2}"120.00"\n/);
    expect(out).toContain(`\nOther requests for this call:\n  ${request}  superseded by mona\n`);
    expect((await as("mona", "approvals", "show", request)).out).toContain(
      `${next}  spent by mona, instead of this one`,
    );
  });

  test.each([
    [["respond", "--yes", "--answer", '{"paid":"by hand"}'], "answered by mona", "completed"],
    [["skip", "--note", "not needed"], "skipped by mona", "completed"],
    [["abort", "--note", "fraud"], "rejected by mona", "cancelled"],
  ])("%j: %s, and the run is %s", async ([verb = "", ...options], said, status) => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request } = await pendingOf(id);
    const { exitCode, out } = await as("mona", "approvals", verb, request, ...options);
    expect(exitCode).toBe(0);
    expect(out).toContain(`${request}: ${said}\n`);
    await untilStatus(id, status);
    const { out: page } = await as("alice", "runs", "show", id);
    expect(page).toMatch(new RegExp(`approver mona +${verb === "abort" ? "reject and abort" : verb} pay`));
  });

  test("escalate passes it on, and says to whom", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request } = await pendingOf(id);
    const { exitCode, out } = await as("mona", "approvals", "escalate", request);
    expect(exitCode).toBe(0);
    expect(out).toContain(`${request}: passed on to finance\n`);
    expect((await as("fay", "approvals", "show", request)).out).toMatch(
      /\nDecided by +finance \(escalation 1\); not by alice\n/,
    );
  });
});

describe("rules", () => {
  test("are listed, tried, put in force and lifted", async () => {
    const test = ["rules", "test", "clerk@1", "pay", "--args"];
    const verdict = async (amount: string) => json(Verdict, "olga", ...test, JSON.stringify({ amount, iban: "NO93" }));
    expect(await verdict("20.00")).toMatchObject({ kind: "needs_approval", rule: "over_limit" });
    expect(await verdict("2000.00")).toMatchObject({ kind: "needs_approval", rule: "much_money" });
    expect((await as("olga", ...test, '{"amount":"20000.00"}')).out).toBe(
      "denied by the rule never: That is too much to pay.\n",
    );
    expect((await as("olga", ...test, '{"amount":7}')).out).toMatch(/^invalid: .*\n(.*\n)*.*amount/);

    const deny = ["rules", "deny", "no_norway", "--tool", "pay", "transfer", "--message", "Not there", "--reason", "x"];
    const conditions = ["--when", "amount >= 500.00", 'iban in ["NO93","NO94"]'];
    const denied = await as("olga", ...deny, ...conditions);
    expect(denied).toMatchObject({ exitCode: 0 });
    expect(denied.out).toMatch(/\nWhen +amount >= 500.00 and iban in \["NO93","NO94"\]\n/);
    expect(denied.out).toContain("no registered agent has transfer");
    expect(await verdict("500.00")).toMatchObject({ kind: "denied", rule: "no_norway" });
    expect(await verdict("499.99")).toMatchObject({ rule: "over_limit" });
    expect((await as("olga", "rules", "list")).out).toMatch(/no_norway +olga +pay, transfer .* denied since/);
    expect(await as("olga", ...deny)).toMatchObject({ exitCode: 1, err: expect.stringContaining("in force already") });
    expect((await as("olga", "rules", "lift", "no_norway")).out).toMatch(/^lifted: no_norway\n/);
    expect(await as("olga", "rules", "lift", "no_norway")).toMatchObject({ exitCode: 3 });
    expect(await json(Rules, "olga", "rules", "list")).toMatchObject({ denials: [] });
    expect(await as("mona", "rules", "list")).toMatchObject({ exitCode: 1 });
  });
});

describe("assignments", () => {
  test("are listed, granted and revoked", async () => {
    const listed = async (...filter: readonly string[]) =>
      (await json(listOf(Assignment), "olga", "assignments", "list", ...filter)).items.map(
        ({ user, role, revokedAt }) => `${user}:${role}${revokedAt === null ? "" : " revoked"}`,
      );
    expect(await listed()).toEqual(["fay:finance", "finn:finance", "max:manager", "mona:manager"]);
    expect((await as("olga", "assignments", "grant", "zoe", "manager")).out).toMatch(/^zoe manager: granted by olga, /);
    expect(await listed("--role", "manager")).toEqual(["max:manager", "mona:manager", "zoe:manager"]);
    expect((await as("olga", "assignments", "revoke", "zoe", "manager")).out).toMatch(
      /^zoe manager: revoked by olga, /,
    );
    expect(await listed("--user", "zoe")).toEqual(["zoe:manager revoked"]);
    expect((await as("olga", "assignments", "list")).out).toMatch(/\nzoe +manager +revoked by olga/);
    expect(await as("olga", "assignments", "revoke", "zoe", "finance")).toMatchObject({ exitCode: 3 });
    expect(await as("olga", "assignments", "grant", "zoe", "operator")).toMatchObject({ exitCode: 2 });
  });
});

describe("what on-call looks at", () => {
  test("services in trouble", async () => {
    await reportRecovered(desk.store, "tool:fail");
    expect((await as("olga", "services")).out).toBe("every service answers\n");
    await reportTrouble(desk.store, { service: "payments", reason: "throttled", retryAfterMs: 3_600_000 });
    expect((await as("olga", "services")).out).toMatch(
      /\npayments +closed until .*\(in .* min\) +throttled, 1 in a row .* 0\n/,
    );
  });

  test("findings, and the run of a name outside", async () => {
    const { id } = await submit("pay the bill");
    await untilStatus(id, "waiting_approval");
    const { id: request, argsHash } = await pendingOf(id);
    await as("mona", "approvals", "approve", request, "--hash", argsHash);
    await untilStatus(id, "completed");
    expect((await as("olga", "findings")).out).toBe("no findings\n");
    const { rows } = await desk.store.pool.query(
      "select a.*, c.operation_id from holdpoint.attempts a join holdpoint.calls c on c.id = a.call_id where c.tool = 'pay' order by a.started_at desc limit 1",
    );
    const [attempt] = rows;
    const body = { kind: "call_failed", callId: attempt.call_id, attempt: 1, errorClass: "refused" } as const;
    await recordLateEvidence(desk.store, {
      runId: attempt.run_id,
      attemptId: attempt.id,
      workerId: attempt.worker,
      body: { ...body, code: "no_funds", retryInMs: 0 },
      settle: { outcome: "failed", externalRef: "pay_77", errorCode: "no_funds" },
    });
    const { out } = await as("olga", "findings");
    expect(out).toMatch(new RegExp(`\n${id} .* pay +pay_77 +attempt 1 was settled as succeeded`));
    const found = async (...filter: readonly string[]) =>
      (await json(listOf(Run), "olga", "runs", "list", ...filter)).items.map((each) => each.id);
    expect(await found("--operation", attempt.operation_id)).toEqual([id]);
    expect(await found("--external-ref", attempt.external_ref)).toEqual([id]);
    expect(await found("--external-ref", "pay_nobody")).toEqual([]);
    expect((await as("olga", "runs", "show", id)).out).toMatch(/late evidence on pay: failed; attempt 1/);
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
