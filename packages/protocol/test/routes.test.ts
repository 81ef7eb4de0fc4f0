import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ACTIONS, ROUTES, type Route, RunId, SessionId } from "../src/index.ts";

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
      const names = [params, query, body].map((schema) => Object.keys(schema?.shape ?? {}));
      expect(names[0]).toEqual(inPath);
      // A client takes all of them in one object.
      expect(new Set(names.flat()).size).toBe(names.flat().length);
    },
  );

  test.each(routes)("%s refuses what it does not know", (_, { query, body }) => {
    for (const schema of [query, body]) {
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
