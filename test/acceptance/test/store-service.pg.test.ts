import type { AddressInfo } from "node:net";
import { createTestDatabase, waitFor } from "@holdpoint/testkit";
import { Pool } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadExpected, loadRetailState, loadTasks } from "../tau-retail/retail-data.ts";
import {
  callTool,
  isToolName,
  type RetailState,
  sha256,
  stateHash,
  type ToolName,
  withChange,
} from "../tau-retail/retail-store.ts";
import { createStoreClient, type StoreCall, type StoreClient, StoreRequestError } from "../tau-retail/store-client.ts";
import { migrateStore } from "../tau-retail/store-service/schema.ts";
import { buildStoreServer } from "../tau-retail/store-service/server.ts";
import { presentFolder, retailFolder } from "./retail-folder.ts";
import { ADDRESS, OTHER_ADDRESS, smallStore } from "./small-store.ts";

const DEADLINE_MS = 10_000;
const cancelInput = { order_id: "#P", reason: "no longer needed" };
const addressInput = { user_id: "anna_1", ...OTHER_ADDRESS };

/** A running service on a database of its own. */
async function openService(base: RetailState) {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase());
  const pool = stack.adopt(new Pool({ connectionString: database.url, max: 8 }), (open) => open.end());
  await migrateStore(pool);
  const server = stack.adopt(buildStoreServer({ pool, base }), (open) => open.close());
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.server.address() as AddressInfo; // listening on TCP
  const url = `http://127.0.0.1:${port}`;
  return { url, pool, client: createStoreClient(url), close: () => stack.disposeAsync() };
}

describe("the store service", () => {
  let service: Awaited<ReturnType<typeof openService>>;
  let store: StoreClient;
  beforeEach(async () => {
    service = await openService(smallStore());
    store = service.client;
  });
  afterEach(() => service.close());

  const call = (tool: ToolName, input: object, fields: Partial<StoreCall> = {}): StoreCall => ({
    task: "7",
    tool,
    arguments: input,
    operationId: "op-1",
    ...fields,
  });
  /**
   * Sends the writes so that all are inside the store at once: none can be journalled before each waits for a lock.
   * A first write makes the task's row, so that they meet at its lock and not at its insert.
   */
  const sendTogether = async (writes: readonly StoreCall[]) => {
    await store.callTool(call("modify_user_address", { user_id: "anna_1", ...ADDRESS }, { operationId: "op-first" }));
    const gate = await service.pool.connect();
    await gate.query("begin; lock table journal in exclusive mode");
    const replies = Promise.all(writes.map((write) => store.callTool(write)));
    try {
      await waitFor(async () => (await countWaiting()) === writes.length, {
        deadlineMs: DEADLINE_MS,
        what: `${writes.length} writes to wait inside the store`,
      });
    } finally {
      await gate.query("commit");
      gate.release();
    }
    return replies;
  };
  const countWaiting = async () => {
    const { rowCount } = await service.pool.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rowCount;
  };
  const heldReply = () =>
    waitFor(async () => (await store.heldReplies()).held[0], { deadlineMs: DEADLINE_MS, what: "a held reply" });

  test("writes the effect and its journal row together", async () => {
    const reply = await store.callTool(call("cancel_pending_order", cancelInput));
    expect(reply).toMatchObject({ ok: true, errorCode: null });
    const [row, ...more] = await store.findExecutions("op-1");
    expect(more).toEqual([]);
    expect(row).toMatchObject({ task: "7", tool: "cancel_pending_order", ok: true, result: reply.content });
    expect(row?.resultSha256).toBe(sha256(reply.content));
    const base = smallStore();
    const { change } = callTool(base, { name: "cancel_pending_order", arguments: cancelInput });
    expect(await store.stateHashOf("7")).toBe(stateHash(withChange(base, change)));
  });

  test("leaves neither effect nor row when the transaction fails between the two", async () => {
    await service.pool.query("alter table journal add check (tool <> 'cancel_pending_order')");
    await expect(store.callTool(call("cancel_pending_order", cancelInput))).rejects.toMatchObject({ status: 500 });
    expect(await store.journalOf()).toEqual([]);
    expect(await store.stateHashOf("7")).toBe(stateHash(smallStore()));
  });

  test("gives each task its own copy of the store", async () => {
    await store.callTool(call("cancel_pending_order", cancelInput));
    expect(await store.stateHashOf("8")).toBe(stateHash(smallStore()));
    expect(await store.callTool(call("cancel_pending_order", cancelInput, { task: "8" }))).toMatchObject({ ok: true });
  });

  test("journals no read, and reads what the task has written", async () => {
    await store.callTool(call("cancel_pending_order", cancelInput));
    const { content } = await store.callTool(call("get_order_details", { order_id: "#P" }));
    expect(JSON.parse(content)).toMatchObject({ status: "cancelled" });
    expect(await store.journalOf("7")).toHaveLength(1);
  });

  test("journals a refused write as an execution without success", async () => {
    const reply = await store.callTool(call("cancel_pending_order", { order_id: "#D", reason: "bored" }));
    expect(reply).toEqual({
      ok: false,
      content: "Error: Non-pending order cannot be cancelled",
      errorCode: "ORDER_NOT_PENDING",
    });
    expect(await store.findExecutions("op-1")).toMatchObject([{ ok: false, errorCode: "ORDER_NOT_PENDING" }]);
  });

  test("executes a look-up tool twice under one operation id: two rows", async () => {
    const replies = [
      await store.callTool(call("cancel_pending_order", cancelInput)),
      await store.callTool(call("cancel_pending_order", cancelInput)),
    ];
    expect(replies.map(({ errorCode }) => errorCode)).toEqual([null, "ORDER_NOT_PENDING"]);
    expect((await store.findExecutions("op-1")).map(({ ok }) => ok)).toEqual([true, false]);
    expect((await store.heldReplies()).lookUps).toBe(1);
  });

  test("executes an address tool once per key, however often and however close together it is asked", async () => {
    const replies = await sendTogether(Array.from({ length: 5 }, () => call("modify_user_address", addressInput)));
    for (const reply of replies) expect(reply).toEqual(replies[0]);
    expect(await store.findExecutions("op-1")).toHaveLength(1);
  });

  test("answers a repeated key from the first execution, not from the state of now", async () => {
    const first = await store.callTool(call("modify_user_address", addressInput));
    await store.callTool(call("modify_user_address", { user_id: "anna_1", ...ADDRESS }, { operationId: "op-2" }));
    const after = await store.stateHashOf("7");
    expect(await store.callTool(call("modify_user_address", addressInput))).toEqual(first);
    expect(await store.stateHashOf("7")).toBe(after);
  });

  test("refuses a key that was used with other arguments", async () => {
    await store.callTool(call("modify_user_address", addressInput));
    const other = call("modify_user_address", { user_id: "anna_1", ...ADDRESS });
    const refused = store.callTool(other);
    await expect(refused).rejects.toThrow(StoreRequestError);
    await expect(refused).rejects.toMatchObject({ status: 409 });
    expect(await store.journalOf("7")).toHaveLength(1);
  });

  test("executes a task's writes one after another", async () => {
    const operationIds = Array.from({ length: 5 }, (_, index) => `op-${index}`);
    const replies = await sendTogether(
      operationIds.map((operationId) => call("cancel_pending_order", cancelInput, { operationId })),
    );
    expect(replies.filter(({ ok }) => ok)).toHaveLength(1);
    expect(await store.journalOf("7")).toHaveLength(6);
  });

  test("holds a reply back while its row is already in the journal, and names who waits", async () => {
    await store.holdReplies({ seed: "s", share: 1 });
    const reply = store.callTool(call("cancel_pending_order", cancelInput, { workerPid: 4_711 }));
    expect(await heldReply()).toEqual({
      operationId: "op-1",
      task: "7",
      tool: "cancel_pending_order",
      workerPid: 4_711,
    });
    expect(await store.findExecutions("op-1")).toMatchObject([{ ok: true }]);
    expect(await store.releaseReplies("op-1")).toBe(1);
    expect(await reply).toMatchObject({ ok: true });
    expect((await store.heldReplies()).counts).toEqual({ held: 1, released: 1, client_gone: 0, timed_out: 0 });
  });

  test("keeps the effect of a client that has gone, and forgets its reply", async () => {
    await store.holdReplies({ seed: "s", share: 1 });
    const client = new AbortController();
    const reply = store.callTool(call("cancel_pending_order", cancelInput), client.signal);
    await heldReply();
    client.abort();
    await expect(reply).rejects.toMatchObject({ name: "AbortError" });
    await waitFor(async () => (await store.heldReplies()).counts.client_gone === 1, {
      deadlineMs: DEADLINE_MS,
      what: "the service to see that its client has gone",
    });
    expect((await store.heldReplies()).held).toEqual([]);
    expect(await store.findExecutions("op-1")).toMatchObject([{ ok: true }]);
  });

  test("does not hold the answer to a repeated key", async () => {
    await store.holdReplies({ seed: "s", share: 1 });
    const first = store.callTool(call("modify_user_address", addressInput));
    await heldReply();
    const repeat = await store.callTool(call("modify_user_address", addressInput));
    await store.releaseReplies();
    expect(await first).toEqual(repeat);
    expect((await store.heldReplies()).counts.held).toBe(1);
  });

  test("lets a held reply go by itself after its time", async () => {
    await store.holdReplies({ seed: "s", share: 1, maxHoldMs: 1 });
    expect(await store.callTool(call("cancel_pending_order", cancelInput))).toMatchObject({ ok: true });
    expect((await store.heldReplies()).counts).toMatchObject({ held: 1, timed_out: 1 });
  });

  test.each<[string, string, RequestInit, number, string]>([
    ["an unknown tool", "/tasks/7/tools/drop_tables", { body: "{}" }, 404, "UNKNOWN_TOOL"],
    ["a write without its key", "/tasks/7/tools/cancel_pending_order", { body: "{}" }, 400, "KEY_MISSING"],
    ["a bad task name", "/tasks/a%20b/tools/calculate", { body: "{}" }, 400, "INVALID_REQUEST"],
    ["arguments that do not fit", "/tasks/7/tools/get_order_details", { body: "{}" }, 400, "INVALID_CALL"],
    ["broken JSON", "/tasks/7/tools/get_order_details", { body: "{" }, 400, "FST_ERR_CTP_INVALID_JSON_BODY"],
    ["an oversized body", "/admin/hold", { body: `"${"x".repeat(70_000)}"` }, 413, "FST_ERR_CTP_BODY_TOO_LARGE"],
  ])("refuses %s and journals nothing", async (_what, path, init, status, code) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(new URL(path, service.url), { method: "POST", headers, ...init });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect(await store.journalOf()).toEqual([]);
  });

  test("takes a write with bad arguments as not executed", async () => {
    const bad = store.callTool(call("cancel_pending_order", { order_id: "#P" }));
    await expect(bad).rejects.toMatchObject({ status: 400 });
    expect(await store.journalOf()).toEqual([]);
  });

  test("makes its tables once when several processes start together", async () => {
    await using database = await createTestDatabase();
    const pools = Array.from({ length: 4 }, () => new Pool({ connectionString: database.url, max: 1 }));
    await Promise.all(pools.map(migrateStore));
    await Promise.all(pools.map((pool) => pool.end()));
  });
});

describe.skipIf(retailFolder === null)("the store service on the public data", () => {
  test("ends all tasks as expected when they are played over HTTP, sixteen at a time", async () => {
    const folder = presentFolder();
    const [base, tasks, expected] = await Promise.all([
      loadRetailState(folder),
      loadTasks(folder, "base"),
      loadExpected(folder, "base"),
    ]);
    const service = await openService(base);
    const queue = tasks.values();
    const ended = new Map<string, object>();
    const playNext = async () => {
      for (const task of queue) {
        const results: string[] = [];
        for (const [index, { name, arguments: input }] of task.actions.entries()) {
          if (!isToolName(name)) throw new Error(`task ${task.id} calls ${name}, which is no tool`);
          const operationId = `${task.id}:${index}`;
          const reply = await service.client.callTool({ task: task.id, tool: name, arguments: input, operationId });
          results.push(sha256(reply.content));
        }
        const journal = await service.client.journalOf(task.id);
        ended.set(task.id, {
          sha256: await service.client.stateHashOf(task.id),
          results,
          writes: new Set(journal.map(({ key }) => key)).size,
          writes_ok: journal.filter(({ ok }) => ok).length,
        });
      }
    };
    try {
      await Promise.all(Array.from({ length: 16 }, playNext));
      expect(await service.client.journalOf()).toHaveLength(expected.totals.writes);
    } finally {
      await service.close();
    }
    expect(ended.size).toBe(expected.totals.tasks);
    for (const { id } of tasks) expect.soft(expected.tasks[id], `task ${id}`).toMatchObject(ended.get(id) ?? { id });
  }, 60_000);
});
