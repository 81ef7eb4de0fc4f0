import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  addWebhook,
  createSession,
  openStore,
  registerAgent,
  requestCancel,
  showIds,
  submitRun,
} from "@holdpoint/store";
import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import { pino } from "pino";
import { expect, test } from "vitest";
import { runSender } from "../src/run-sender.ts";

const AGENT = { name: "refunds", version: "1" };
const ALICE = { kind: "requester", id: "alice" } as const;

test("says of each attempt what became of it, and nothing that only the receiver is to know", async () => {
  await using database = await createTestDatabase();
  await using store = openStore({ url: database.url });
  let answer = 503;
  const server = createServer((_, response) => void response.writeHead(answer).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server on a port has an address of this shape.
  const { port } = server.address() as AddressInfo;
  const secret = "whsec_nobody-else-is-to-know-this-one";
  const url = `http://127.0.0.1:${port}/hook?token=hidden`;
  await addWebhook(store, { name: "billing", url, secret, policy: "done_only", agentName: null, by: "olga" });
  await registerAgent(store, { ...AGENT, tools: [] });
  const { id: sessionId } = await createSession(store, "alice");
  const lines: string[] = [];
  const log = pino({ formatters: { log: showIds } }, { write: (line: string) => void lines.push(line) });
  const stop = new AbortController();
  const running = runSender({ store, pollMs: 20, log }, stop.signal);
  for (const [index, status] of [503, 204].entries()) {
    answer = status;
    const submitted = await submitRun(store, { sessionId, agent: AGENT, goal: "refund order 4411", actor: ALICE });
    if (submitted.result !== "submitted") throw new Error(submitted.result);
    await requestCancel(store, { runId: submitted.run.id, actor: ALICE, reason: null });
    await waitFor(() => lines.length > index, { deadlineMs: 10_000, what: "a line of the log" });
  }
  stop.abort();
  await running;
  await new Promise((resolve) => server.close(resolve));
  const told = { deliveryId: expect.stringMatching(/^dlv_/), runId: expect.stringMatching(/^run_/), attempt: 1 };
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: "delivery.failed", level: 40, ...told, httpStatus: 503, errorCode: "HTTP_503" },
    { event: "delivery.delivered", level: 30, ...told, httpStatus: 204, errorCode: null },
  ]);
  for (const hidden of [secret, "hidden", "127.0.0.1", "4411"]) expect(lines.join("")).not.toContain(hidden);
});
