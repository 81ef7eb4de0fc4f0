import { describe, expect, test } from "vitest";
import { AGENT, ARGS, HASH, problemOf, TOOL, useTestApi } from "./api-fixture.ts";
import { aWaitingRun } from "./stage-run.ts";

const api = useTestApi();

const mona = () => api.as("mona-token");
const olga = () => api.as("olga-token");

describe("rules", () => {
  test("are listed with whom they ask, of every agent and of the operators", async () => {
    const when = [{ argument: "iban", is: "in" as const, value: ["NO"] }];
    const rule = { name: "no_norway", tools: ["*"], when, message: "Not there" };
    await olga().denyCalls({ rule, reason: "sanctions" });
    const { registered, denials } = await olga().listRules();
    expect(registered).toMatchObject([
      { agent: AGENT, rule: { name: "too_much", action: "deny", tools: [TOOL] } },
      {
        rule: {
          name: "two_of_finance",
          action: "ask",
          when: [{ argument: "amount", is: ">", value: "100.00" }],
          approval: { quorum: 2, approvers: { roles: ["finance"] } },
        },
      },
      { rule: { name: "over_limit", approval: { quorum: 1, approvers: { roles: ["manager"] } } } },
    ]);
    expect(denials).toMatchObject([{ rule: { ...rule, action: "deny" }, reason: "sanctions", createdBy: "olga" }]);
    expect(await olga().liftDenial({ name: "no_norway" })).toMatchObject({ rule: { name: "no_norway" } });
    expect((await olga().listRules()).denials).toEqual([]);
  });

  test.each([
    ["5.00", { kind: "allowed" }],
    ["30.00", { kind: "needs_approval", rule: "over_limit", approval: { quorum: 1 } }],
    ["100.01", { kind: "needs_approval", rule: "two_of_finance", approval: { quorum: 2 } }],
    ["1000.01", { kind: "denied", rule: "too_much", message: "Refunds over 1000.00 are not made here." }],
    ["1e9", { kind: "invalid", message: expect.stringContaining("amount") }],
  ])("say of a refund of %s what would become of it", async (amount, verdict) => {
    const tested = await olga().testRules({ agent: AGENT, tool: TOOL, args: { ...ARGS, amount } });
    expect(tested).toMatchObject(verdict);
  });

  test("that operators have given count in a trial, too", async () => {
    const rule = { name: "closed_today", tools: [TOOL], when: [], message: "Come back tomorrow" };
    const { unknownTools } = await olga().denyCalls({
      rule: { ...rule, tools: [TOOL, "send_refnd"] },
      reason: "audit",
    });
    expect(unknownTools).toEqual(["send_refnd"]);
    const tested = { agent: AGENT, tool: TOOL, args: ARGS };
    expect(await olga().testRules(tested)).toEqual({
      kind: "denied",
      rule: "closed_today",
      message: "Come back tomorrow",
    });
    expect(await problemOf(olga().denyCalls({ rule, reason: "again" }))).toMatchObject({
      status: 409,
      rule: "rule_in_force",
    });
    await olga().liftDenial({ name: "closed_today" });
    expect(await olga().testRules(tested)).toMatchObject({ rule: "over_limit" });
    expect(await problemOf(olga().liftDenial({ name: "closed_today" }))).toMatchObject({ status: 404 });
  });

  test("of an agent or a tool that is not there are told as such", async () => {
    const tested = { agent: { ...AGENT, version: "9" }, tool: TOOL, args: ARGS };
    expect(await problemOf(olga().testRules(tested))).toMatchObject({ status: 422, code: "agent_unknown" });
    expect(await problemOf(olga().testRules({ ...tested, agent: AGENT, tool: "pay" }))).toMatchObject({ status: 404 });
  });

  test("with text that Postgres cannot hold are stored as what it can", async () => {
    const rule = { name: "odd_text", tools: ["none"], when: [], message: "a\u0000b" };
    expect(await olga().denyCalls({ rule, reason: "c\ud800d" })).toMatchObject({ denial: { createdBy: "olga" } });
    await olga().liftDenial({ name: "odd_text" });
  });
});

describe("assignments", () => {
  test("come from the tokens, and only the approvers' roles", async () => {
    const { items } = await olga().listAssignments({ role: "manager" });
    expect(items).toMatchObject([
      { user: "alice", role: "manager", grantedBy: "configuration", revokedBy: null },
      { user: "max" },
      { user: "mona" },
    ]);
    const all = (await olga().listAssignments()).items;
    expect(new Set(all.map(({ role }) => role))).toEqual(new Set(["manager", "finance"]));
  });

  test("come in pages", async () => {
    const seen: string[] = [];
    let page = await olga().listAssignments({ limit: 2 });
    seen.push(...page.items.map(({ user, role }) => `${user}:${role}`));
    while (page.next !== null && seen.length < 20) {
      page = await olga().listAssignments({ limit: 2, cursor: page.next });
      seen.push(...page.items.map(({ user, role }) => `${user}:${role}`));
    }
    expect(seen).toEqual(["alice:manager", "fay:finance", "finn:finance", "max:manager", "mona:manager"]);
  });

  test("count from the moment they are made, until they are revoked", async () => {
    const { approvalId } = await aWaitingRun(api);
    const carl = api.as("carl-token");
    const role = { user: "carl", role: "manager" };
    expect(await problemOf(carl.showApproval({ approvalId }))).toMatchObject({ status: 404 });
    expect(await olga().grantRole(role)).toMatchObject({ ...role, grantedBy: "olga", revokedAt: null });
    expect(await carl.showApproval({ approvalId })).toMatchObject({ decisions: { approve: null } });
    expect(await olga().revokeRole(role)).toMatchObject({ ...role, revokedBy: "olga", revokedAt: expect.any(String) });
    expect(await olga().revokeRole(role)).toMatchObject({ revokedBy: "olga" });
    const decision = { approvalId, argsHash: HASH, decision: "approve" } as const;
    expect(await problemOf(carl.decideApproval(decision))).toMatchObject({ status: 404 });
  });

  test("that never were are not found", async () => {
    expect(await problemOf(olga().revokeRole({ user: "carl", role: "finance" }))).toMatchObject({ status: 404 });
  });

  test.each(["operator", "requester"])("never give the role %s, which comes with a token", async (role) => {
    expect(await problemOf(olga().grantRole({ user: "bob", role }))).toMatchObject({ status: 400 });
  });
});

test.each(["mona-token", "alice-token"])("%s may neither read nor change rules and assignments", async (token) => {
  const caller = api.as(token);
  const rule = { name: "all", tools: ["*"], when: [], message: "no" };
  const refused = [
    caller.listRules(),
    caller.testRules({ agent: AGENT, tool: TOOL, args: ARGS }),
    caller.denyCalls({ rule, reason: "x" }),
    caller.liftDenial({ name: "all" }),
    caller.listAssignments(),
    caller.grantRole({ user: "bob", role: "manager" }),
    caller.revokeRole({ user: "mona", role: "manager" }),
    caller.listFindings(),
    caller.listServices(),
  ];
  for (const problem of await Promise.all(refused.map(problemOf))) {
    expect(problem).toMatchObject({ status: 403, code: "forbidden" });
  }
});

test("an agent's rules and schemas are not told to every caller", async () => {
  expect(JSON.stringify(await mona().listAgents())).not.toMatch(/over_limit|pattern/);
});
