import type { Pool, PoolClient } from "pg";
import {
  type CallResult,
  type Change,
  callTool,
  canonicalJson,
  type Order,
  type RetailState,
  sha256,
  type ToolName,
  type ToolOffer,
  type User,
} from "../retail-store.ts";
import { appendToJournal, type JournalRow, journalOfTask } from "./journal.ts";

/** A call of a write tool, with the operation id that the caller minted for it. */
export type WriteCall = {
  readonly task: string;
  readonly tool: ToolName;
  readonly input: unknown;
  readonly key: string;
  readonly offer: Exclude<ToolOffer, "read">;
};

/** What the model gets to read. */
export type ToolReply = { readonly ok: boolean; readonly content: string; readonly errorCode: string | null };

/** `ordinal` counts the task's executions before this one. A replayed reply comes from the journal, nothing ran. */
export type WriteResult =
  | { readonly kind: "executed"; readonly reply: ToolReply; readonly ordinal: number }
  | { readonly kind: "replayed"; readonly reply: ToolReply }
  | { readonly kind: "key_reused" };

/** The task's own copy of the store: the untouched store with the objects that the task's writes replaced. */
export async function loadTaskState(db: Pool | PoolClient, base: RetailState, task: string): Promise<RetailState> {
  const { rows } = await db.query<{ kind: "order" | "user"; id: string; body: string }>(
    "select kind, id, body from task_objects where task = $1",
    [task],
  );
  const orders: Record<string, Order> = { ...base.orders };
  const users: Record<string, User> = { ...base.users };
  for (const { kind, id, body } of rows) {
    // Bodies are written by saveChange alone.
    if (kind === "order") orders[id] = JSON.parse(body) as Order;
    else users[id] = JSON.parse(body) as User;
  }
  return { orders, users, products: base.products };
}

/**
 * Executes a write: effect and journal row in one transaction, the task's writes one after another.
 * A key tool whose key is already in the task's journal answers from its first row and executes nothing.
 *
 * @throws {InvalidCallError} the arguments do not fit the tool; nothing was executed and nothing journalled.
 */
export async function executeWrite(pool: Pool, base: RetailState, call: WriteCall): Promise<WriteResult> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await executeLocked(client, base, call);
    await client.query("commit");
    client.release();
    return result;
  } catch (error) {
    client.release(true); // the connection is closed, and with it the transaction
    throw error;
  }
}

async function executeLocked(client: PoolClient, base: RetailState, call: WriteCall): Promise<WriteResult> {
  await client.query("insert into tasks (task) values ($1) on conflict do nothing", [call.task]);
  await client.query("select from tasks where task = $1 for update", [call.task]);
  // Read only now, in statements of their own: a statement that waited for the lock sees other rows as they were before.
  const earlier = await journalOfTask(client, call.task);
  const argumentsSha256 = sha256(canonicalJson(call.input));
  const first = earlier.find((row) => row.key === call.key);
  if (call.offer === "key" && first !== undefined) {
    const same = first.tool === call.tool && first.argumentsSha256 === argumentsSha256;
    return same ? { kind: "replayed", reply: replyFrom(first) } : { kind: "key_reused" };
  }
  const state = await loadTaskState(client, base, call.task);
  const result: CallResult = callTool(state, { name: call.tool, arguments: call.input });
  await saveChange(client, call.task, result.change);
  await appendToJournal(client, {
    key: call.key,
    task: call.task,
    tool: call.tool,
    argumentsSha256,
    ok: result.ok,
    errorCode: result.errorCode,
    resultSha256: sha256(result.content),
    result: result.content,
  });
  const { ok, content, errorCode } = result;
  return { kind: "executed", reply: { ok, content, errorCode }, ordinal: earlier.length };
}

async function saveChange(client: PoolClient, task: string, { order, user }: Change): Promise<void> {
  if (order !== undefined) await saveObject(client, [task, "order", order.order_id, canonicalJson(order)]);
  if (user !== undefined) await saveObject(client, [task, "user", user.user_id, canonicalJson(user)]);
}

async function saveObject(client: PoolClient, values: [task: string, kind: string, id: string, body: string]) {
  await client.query(
    `insert into task_objects (task, kind, id, body) values ($1, $2, $3, $4)
     on conflict (task, kind, id) do update set body = excluded.body`,
    values,
  );
}

function replyFrom(row: JournalRow): ToolReply {
  return { ok: row.ok, content: row.result, errorCode: row.errorCode };
}
