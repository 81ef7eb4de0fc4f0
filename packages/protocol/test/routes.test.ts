import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ACTIONS, CallbackBody, NewDenyRule, namesOf, ROUTES, type Route, RunId, SessionId } from "../src/index.ts";

const routes = Object.entries<Route>(ROUTES);

describe("the route table", () => {
  test("has each method and path once", () => {
    const addresses = routes.map(([, { method, path }]) => `${method} ${path.replaceAll(/:\w+/g, ":id")}`);
    expect(new Set(addresses).size).toBe(addresses.length);
  });

  test.each(routes)(
    "%s takes exactly the ids of its path, and no name in two places",
    (_, { path, params, query, body }) => {
      const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
      const names = [params, query, body].map(namesOf);
      expect(names[0]).toEqual(inPath);
      // A client takes all of them in one object.
      expect(new Set(names.flat()).size).toBe(names.flat().length);
    },
  );

  test.each(routes)("%s refuses what it does not know", (_, { query, body }) => {
    const forms = body instanceof z.ZodDiscriminatedUnion ? body.options : [body];
    for (const schema of [query, ...forms]) {
      if (schema === undefined) continue;
      const { error } = schema.safeParse({ surprise: 1 });
      expect(error?.issues.some(({ code }) => code === "unrecognized_keys")).toBe(true);
    }
  });

  test.each(routes)("%s can be described as JSON schema", (_, { query, body, reply }) => {
    for (const schema of [query, body])
      if (schema !== undefined) expect(() => z.toJSONSchema(schema, { io: "input" })).not.toThrow();
    expect(() => z.toJSONSchema(reply)).not.toThrow();
  });

  test("reads lists, flags and limits from a query's text", () => {
    expect(ROUTES.listRuns.query.parse({ status: "queued,running", overdue: "true", limit: "7" })).toEqual({
      status: ["queued", "running"],
      overdue: true,
      limit: 7,
    });
    expect(ROUTES.listRuns.query.parse({})).toEqual({ limit: 50 });
    for (const limit of ["0", "201", "1.5", "many"])
      expect(ROUTES.listRuns.query.safeParse({ limit }).success).toBe(false);
  });
});

describe("a decision about an approval request", () => {
  const { body } = ROUTES.decideApproval;
  const named = { argsHash: "hash-1" };

  test.each([
    { decision: "approve" },
    { decision: "approve", note: "fine" },
    { decision: "approve_with_edits", args: { amount: "30.00" } },
    { decision: "reject", note: "too much" },
    { decision: "reject_and_abort", note: "fraud" },
    { decision: "respond", answer: { paid: false } },
    { decision: "skip" },
    { decision: "escalate" },
  ])("may be %j, and names the hash that was shown", (decision) => {
    expect(body.safeParse({ ...decision, ...named }).success).toBe(true);
    expect(body.safeParse(decision).success).toBe(false);
    expect(body.safeParse({ ...decision, ...named, surprise: 1 }).success).toBe(false);
  });

  test.each([
    { decision: "approve", args: { amount: "30.00" } },
    { decision: "approve_with_edits" },
    { decision: "reject" },
    { decision: "reject", note: " " },
    { decision: "reject_and_abort" },
    { decision: "respond" },
    { decision: "skip", answer: 1 },
    { decision: "expire" },
  ])("is not %j", (decision) => {
    expect(body.safeParse({ ...decision, ...named }).success).toBe(false);
  });
});

describe("a rule that forbids", () => {
  const rule = (when: unknown) =>
    NewDenyRule.safeParse({ name: "no_refunds", tools: ["send_refund"], when: [when], message: "Not now" }).success;

  test.each([
    { argument: "amount", is: ">", value: "100.00" },
    { argument: "amount", is: "<=", value: 100 },
    { argument: "customer.country", is: "=", value: "NO" },
    { argument: "items.0", is: "!=", value: { sku: 1 } },
    { argument: "country", is: "in", value: ["NO", "SE"] },
  ])("may stand on %j", (when) => {
    expect(rule(when)).toBe(true);
  });

  test.each([
    { argument: "amount", is: ">", value: "much" },
    { argument: "amount", is: ">", value: "1e3" },
    { argument: "amount", is: ">", value: null },
    { argument: "country", is: "in", value: "NO" },
    { argument: "country", is: "in", value: [] },
    { argument: "", is: "=", value: 1 },
    { argument: "amount", is: "~", value: 1 },
    { argument: "amount", is: "=" },
    { argument: "amount", is: "=", value: 1, or: 2 },
  ])("does not stand on %j", (when) => {
    expect(rule(when)).toBe(false);
  });
});

test("a report from outside names its effect in exactly one way", () => {
  const takes = (names: object) => CallbackBody.safeParse({ id: "evt_1", status: "settled", ...names }).success;
  expect(takes({ externalRef: "re_1" })).toBe(true);
  expect(takes({ operationId: "op_1", at: "2026-11-30T14:10:26+01:00" })).toBe(true);
  expect(takes({})).toBe(false);
  expect(takes({ externalRef: "re_1", operationId: "op_1" })).toBe(false);
  expect(takes({ externalRef: "re_1", amount: 1 })).toBe(false);
});

test.each(["requester", "operator", "task_runner"])("%s comes with a token, and is never assigned", (role) => {
  expect(ROUTES.grantRole.body.safeParse({ user: "mona", role }).success).toBe(false);
  expect(ROUTES.grantRole.body.safeParse({ user: "mona", role: "manager" }).success).toBe(true);
});

describe("ids", () => {
  test.each(["run_01kbatk4e0e5m8w7v3x9yq2n6r", "run_00000000000000000000000000", "run_7zzzzzzzzzzzzzzzzzzzzzzzzz"])(
    "%s is a run's",
    (id) => {
      expect(RunId.safeParse(id).success).toBe(true);
      expect(SessionId.safeParse(id).success).toBe(false);
    },
  );

  test.each([
    "",
    "run_",
    "run_01kbatk4e0e5m8w7v3x9yq2n6",
    "run_81kbatk4e0e5m8w7v3x9yq2n6r",
    "run_01kbatk4e0e5m8w7v3x9yq2n6u",
    "RUN_01kbatk4e0e5m8w7v3x9yq2n6r",
    "01kbatk4e0e5m8w7v3x9yq2n6r",
  ])("%j is none", (id) => {
    expect(RunId.safeParse(id).success).toBe(false);
  });
});

test("a tool's JSON may be anything that is not too deep", () => {
  const schema = ROUTES.decideAsOperator.body;
  const decision = (result: unknown) => schema.safeParse({ choice: "mark_done", reason: "seen", result }).success;
  for (const result of [null, 0, "", [], {}, { refund: { id: "re_1", parts: [1, 2] } }])
    expect(decision(result)).toBe(true);
  const deep = (levels: number): unknown => (levels === 0 ? null : [deep(levels - 1)]);
  expect(decision(deep(64))).toBe(true);
  expect(decision(deep(65))).toBe(false);
});

test("every action is named once", () => {
  expect(new Set(ACTIONS).size).toBe(ACTIONS.length);
});
