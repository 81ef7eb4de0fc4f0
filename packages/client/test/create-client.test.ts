import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { createClient, NoReplyError, ProblemError } from "../src/index.ts";

const RUN_ID = "run_01kbatk4e0e5m8w7v3x9yq2n6r";
const SESSION_ID = "ses_01kbatk4e0e5m8w7v3x9yq2n6r";

/** A client of a server that answers like this; the requests that came are kept. */
async function clientOf(answer: RequestListener) {
  const seen: {
    method: string | undefined;
    url: string | undefined;
    headers: IncomingMessage["headers"];
    body: string;
  }[] = [];
  const server = createServer(async (request, response) => {
    seen.push({ method: request.method, url: request.url, headers: request.headers, body: await text(request) });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // A server that listens on TCP has an address of this form.
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { client: createClient({ baseUrl, token: "alice-token", timeoutMs: 5_000 }), seen, server };
}

const json =
  (status: number, body: unknown): RequestListener =>
  (_, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

describe("a call", () => {
  test("puts each part of its input where the route wants it", async () => {
    const { client, seen } = await clientOf(json(200, { items: [], next: null }));
    await client.listRuns({ status: ["queued", "running"], overdue: true, limit: 5 });
    await client.listMessages({ sessionId: SESSION_ID });
    await failure(
      client.submitRun(
        { sessionId: SESSION_ID, agent: { name: "refunds", version: "1" }, goal: "refund" },
        { idempotencyKey: "key-1" },
      ),
    );
    await failure(client.pauseRun({ runId: RUN_ID }));
    expect(seen).toMatchObject([
      {
        method: "GET",
        url: "/runs?limit=5&status=queued%2Crunning&overdue=true",
        headers: { authorization: "Bearer alice-token" },
      },
      { method: "GET", url: `/sessions/${SESSION_ID}/messages`, body: "" },
      {
        method: "POST",
        url: `/sessions/${SESSION_ID}/runs`,
        headers: { "idempotency-key": "key-1", "content-type": "application/json" },
        body: '{"agent":{"name":"refunds","version":"1"},"goal":"refund"}',
      },
      { method: "POST", url: `/runs/${RUN_ID}/pause`, body: "" },
    ]);
  });

  test("keeps an id from changing the address", async () => {
    const { client, seen } = await clientOf(json(404, {}));
    await failure(client.showRun({ runId: "../workers?gone=true" }));
    expect(seen).toMatchObject([{ url: "/runs/..%2Fworkers%3Fgone%3Dtrue" }]);
  });
});

describe("an answer", () => {
  test("that is a problem becomes an error with its code and rule", async () => {
    const problem = {
      type: "urn:holdpoint:problem:refused",
      title: "Refused",
      status: 409,
      detail: "The run has ended.",
      code: "refused",
      requestId: "1",
      rule: "run_ended",
    };
    const { client } = await clientOf(json(409, problem));
    const error = await failure(client.cancelRun({ runId: RUN_ID }));
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({
      message: "The run has ended.",
      status: 409,
      code: "refused",
      title: "Refused",
      rule: "run_ended",
      problem,
    });
  });

  test.each([
    [200, { id: 7 }],
    [502, "<html>bad gateway</html>"],
    [404, {}],
  ])("with status %i that this api never gives is told as such", async (status, body) => {
    const { client } = await clientOf(json(status, body));
    const error = await failure(client.showRun({ runId: RUN_ID }));
    expect(error).toBeInstanceOf(NoReplyError);
    expect(error).toMatchObject({ code: "unexpected_reply" });
  });

  test("that never comes ends with the time limit, or with the caller's signal", async () => {
    const { client } = await clientOf(() => undefined);
    expect(await failure(client.showHealth({}, { timeoutMs: 20 }))).toMatchObject({
      name: "NoReplyError",
      code: "timeout",
    });
    const stop = new AbortController();
    const waiting = failure(client.showHealth({}, { signal: stop.signal }));
    stop.abort(new Error("no longer wanted"));
    expect(await waiting).toMatchObject({ message: "no longer wanted" });
  });

  test("that stops in its middle ends with the time limit", async () => {
    const { client } = await clientOf((_, response) => void response.writeHead(200).write("{"));
    expect(await failure(client.showHealth({}, { timeoutMs: 200 }))).toMatchObject({ code: "timeout" });
  });
});

test("an api that is not there is told with its address", async () => {
  const client = createClient({ baseUrl: "http://127.0.0.1:9", token: "alice-token" });
  const error = await failure(client.listAgents());
  expect(error).toMatchObject({
    name: "NoReplyError",
    code: "unreachable",
    message: "GET http://127.0.0.1:9/agents: the api cannot be reached. Is it running?",
  });
});
