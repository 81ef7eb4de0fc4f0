import { request } from "node:http";
import { Problem, ROUTES } from "@holdpoint/protocol";
import { openPublisher } from "@holdpoint/queue";
import { openStore } from "@holdpoint/store";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildApi } from "../src/index.ts";
import { AGENT, useTestApi } from "./api-fixture.ts";
import { aRun } from "./stage-run.ts";

const api = useTestApi();

const BEARER = { authorization: "Bearer alice-token" };
const JSON_TYPE = { ...BEARER, "content-type": "application/json" };

/** The problem that a raw request is answered with; it must be one in every respect. */
async function refusedRequest(path: string, init: RequestInit = {}) {
  const response = await fetch(`${api.baseUrl}${path}`, { headers: BEARER, ...init });
  expect(response.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  const problem = Problem.parse(await response.json());
  expect(problem.status).toBe(response.status);
  return problem;
}

describe("bodies", () => {
  test("all mistakes of a request are told together", async () => {
    const session = await api.as("alice-token").createSession();
    const problem = await refusedRequest(`/sessions/${session.id}/runs`, {
      method: "POST",
      headers: { ...JSON_TYPE, "idempotency-key": "has spaces" },
      body: JSON.stringify({ agent: { name: 7 }, goal: " ", extra: true }),
    });
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    expect(problem.mistakes?.map(({ path }) => path)).toEqual([
      "body.agent.name",
      "body.agent.version",
      "body.goal",
      "body",
      "header.idempotency-key",
    ]);
  });

  test("a body that is no JSON, too large, or of another type has its own code", async () => {
    const { id } = await aRun(api);
    const post = (body: string, headers = JSON_TYPE) =>
      refusedRequest(`/runs/${id}/messages`, { method: "POST", headers, body });
    expect(await post('{"text": "hel')).toMatchObject({ status: 400, code: "malformed_body" });
    expect(await post("")).toMatchObject({ status: 400, code: "malformed_body" });
    expect(await post(JSON.stringify({ text: "x".repeat(200_000) }))).toMatchObject({
      status: 413,
      code: "body_too_large",
    });
    expect(await post(JSON.stringify({ text: "x".repeat(20_000) }))).toMatchObject({
      status: 400,
      code: "invalid_request",
    });
    expect(await post("a=b", { ...BEARER, "content-type": "text/csv" })).toMatchObject({
      status: 415,
      code: "unsupported_media_type",
    });
  });

  test("a chunked body is measured as it comes", async () => {
    const { id } = await aRun(api);
    const status = await new Promise((resolve, reject) => {
      const sent = request(`${api.baseUrl}/runs/${id}/messages`, { method: "POST", headers: JSON_TYPE }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on("error", reject);
      sent.write(`{"text":"`);
      sent.write("x".repeat(140_000));
      sent.end();
    });
    expect(status).toBe(413);
  });

  test("ids of another kind, unknown filters and limits out of range are told", async () => {
    const { sessionId } = await aRun(api);
    expect(await refusedRequest(`/runs/${sessionId}`)).toMatchObject({
      status: 400,
      mistakes: [{ path: "path.runId", message: "must be the id of a run: run_ and 26 characters" }],
    });
    const problem = await refusedRequest("/runs?limit=201&status=queued,sleeping&colour=red");
    expect(problem.mistakes?.map(({ path }) => path)).toEqual(["query.limit", "query.status.1", "query"]);
  });

  test("JSON that goes too deep for its readers is told", async () => {
    const { id } = await aRun(api);
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const body = `{"choice":"mark_done","reason":"seen","result":${deep}}`;
    const problem = await refusedRequest(`/runs/${id}/decisions`, { method: "POST", headers: JSON_TYPE, body });
    expect(problem).toMatchObject({ status: 400, mistakes: [{ path: "body.result" }] });
  });

  test("text that Postgres cannot hold is made storable", async () => {
    const { id } = await aRun(api, "a\u0000b \ud800");
    expect(await api.as("alice-token").showRun({ runId: id })).toMatchObject({ status: "queued" });
  });
});

test("nobody without a known token gets in, and an unknown address is a problem, too", async () => {
  expect(await refusedRequest("/runs", { headers: {} })).toMatchObject({ status: 401, code: "unauthenticated" });
  expect(await refusedRequest("/runs", { headers: { authorization: "Bearer nobody" } })).toMatchObject({ status: 401 });
  expect(await refusedRequest("/nowhere")).toMatchObject({ status: 404, code: "not_found" });
  expect(await refusedRequest("/runs/%zz")).toMatchObject({ status: 400, code: "invalid_request" });
  expect((await fetch(`${api.baseUrl}/health`)).status).toBe(200);
});

test("readiness writes to Postgres and to the queue", async () => {
  const written = async () => {
    const { rows } = await api.store.pool.query("select xmin::text from holdpoint.tenants");
    return rows;
  };
  const before = await written();
  expect(await api.as("alice-token").showReadiness()).toEqual({ status: "ready", postgres: "ok", queue: "ok" });
  expect(await written()).not.toEqual(before);
});

test("while the database is away every request is a 503 that says so, without a secret", async () => {
  const url = "postgres://holdpoint:hunter22@127.0.0.1:9/none";
  const logged: string[] = [];
  const store = openStore({ url });
  const publisher = openPublisher({ kind: "postgres", url });
  const app = await buildApi({
    store,
    publisher,
    tokens: [{ token: "alice-token", user: "alice", roles: ["requester"] }],
    log: pino({}, { write: (line) => logged.push(line) }),
  });
  onTestFinished(async () => {
    await app.close();
    await publisher[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  for (const path of ["/runs", "/agents", "/ready"]) {
    const response = await app.inject({ url: path, headers: BEARER });
    expect(response.statusCode).toBe(503);
    expect(response.json()).toMatchObject({ code: "unavailable", status: 503 });
  }
  expect((await app.inject({ url: "/health" })).statusCode).toBe(200);
  expect(logged.join("")).toContain("ECONNREFUSED");
  expect(logged.join("")).not.toContain("hunter22");
});

/** The parts of the document that are looked at. */
interface OpenApi {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

describe("the OpenAPI document", () => {
  test("has every route of the table, and every reference in it leads somewhere", async () => {
    const response = await fetch(`${api.baseUrl}/openapi.json`);
    const document = (await response.json()) as OpenApi;
    expect(document.openapi).toMatch(/^3\.1\./);
    for (const [name, route] of Object.entries(ROUTES)) {
      const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
      const operation = document.paths[path]?.[route.method.toLowerCase()];
      expect(operation, name).toMatchObject({ operationId: name, summary: route.summary });
      expect(operation?.responses[String(route.status)], name).toBeDefined();
      if ("body" in route) expect(operation?.requestBody, name).toBeDefined();
    }
    const listed = Object.values(document.paths).flatMap((path) => Object.keys(path));
    // What is reported from outside is no route of the client's.
    expect(document.paths["/callbacks/{source}"]?.post).toMatchObject({ operationId: "reportCallback" });
    expect(listed).toHaveLength(Object.keys(ROUTES).length + 1);
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
    expect(references.length).toBeGreaterThan(0);
    for (const [, name = ""] of references) expect(document.components.schemas[name], name).toBeDefined();
  });
});

test("a run that a requester submits twice without a key is two runs", async () => {
  const alice = api.as("alice-token");
  const { id: sessionId } = await alice.createSession();
  const input = { sessionId, agent: AGENT, goal: "refund" };
  expect((await alice.submitRun(input)).id).not.toBe((await alice.submitRun(input)).id);
});
