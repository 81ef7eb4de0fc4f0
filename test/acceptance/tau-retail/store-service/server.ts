import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Pool } from "pg";
import { z } from "zod";
import {
  callTool,
  InvalidCallError,
  isToolName,
  type RetailState,
  stateHash,
  TOOL_OFFERS,
  type ToolName,
} from "../retail-store.ts";
import { journalOfKey, journalOfTask } from "./journal.ts";
import { createReplyHolds, HoldRule, type ReplyHolds } from "./reply-holds.ts";
import { executeWrite, loadTaskState, type ToolReply } from "./task-state.ts";

export type StoreDeps = { readonly pool: Pool; readonly base: RetailState };

const TaskName = z.string().regex(/^[\w-]{1,64}$/, "a task is named by 1 to 64 letters, digits, _ or -");
const ToolPath = z.object({ task: TaskName, name: z.string() });
const OperationId = z.string().min(1).max(200);
const WorkerPid = z.coerce.number().int().positive().optional();

/** The caller's fault, with the status that says so. */
class RequestError extends Error {
  readonly statusCode: number;
  readonly code: string;

  constructor(statusCode: number, code: string, message: string) {
    super(message);
    this.name = "RequestError";
    this.statusCode = statusCode;
    this.code = code;
  }
}

/** The retail store as an outside service: tools, journal look-up, and the director's view under /admin. */
export function buildStoreServer({ pool, base }: StoreDeps): FastifyInstance {
  const server = fastify({ bodyLimit: 65_536, forceCloseConnections: true });
  const holds = createReplyHolds();
  const lookUps = { count: 0 };

  server.setErrorHandler(sendError);
  server.addHook("preClose", async () => {
    holds.release(null);
  });

  server.post("/tasks/:task/tools/:name", async (request, reply) => {
    const { task, name } = ToolPath.parse(request.params);
    if (!isToolName(name)) throw new RequestError(404, "UNKNOWN_TOOL", `the store has no tool named ${name}`);
    if (TOOL_OFFERS[name] === "read") return readWith({ pool, base }, task, { name, input: request.body });
    return writeWith({ pool, base, holds }, { task, tool: name, request, reply });
  });

  server.get("/journal", async (request) => {
    const { key } = z.object({ key: OperationId }).parse(request.query);
    lookUps.count += 1;
    return { rows: await journalOfKey(pool, key) };
  });

  addAdminRoutes(server, { pool, base, holds, lookUps });
  return server;
}

async function readWith(deps: StoreDeps, task: string, call: { name: ToolName; input: unknown }): Promise<ToolReply> {
  const state = await loadTaskState(deps.pool, deps.base, task);
  const { ok, content, errorCode } = callTool(state, { name: call.name, arguments: call.input });
  return { ok, content, errorCode };
}

type WriteRequest = { task: string; tool: ToolName; request: FastifyRequest; reply: FastifyReply };

async function writeWith(
  { pool, base, holds }: StoreDeps & { holds: ReplyHolds },
  { task, tool, request, reply }: WriteRequest,
): Promise<ToolReply> {
  const clientGone = signalWhenGone(reply);
  const offer = TOOL_OFFERS[tool] === "key" ? "key" : "look-up";
  const key = headerOf(request, offer === "key" ? "idempotency-key" : "operation-id");
  const workerPid = WorkerPid.parse(request.headers["worker-pid"]) ?? null;
  const result = await executeWrite(pool, base, { task, tool, input: request.body, key, offer });
  if (result.kind === "key_reused") {
    throw new RequestError(
      409,
      "KEY_REUSED",
      "this Idempotency-Key was first used with another tool or other arguments",
    );
  }
  if (result.kind === "replayed") {
    reply.header("idempotent-replayed", "true");
    return result.reply;
  }
  // From here on the effect is committed and journalled; only its reply may be late or lost.
  await holds.hold({ operationId: key, task, tool, workerPid, ordinal: result.ordinal }, clientGone);
  return result.reply;
}

function addAdminRoutes(
  server: FastifyInstance,
  { pool, base, holds, lookUps }: StoreDeps & { holds: ReplyHolds; lookUps: { readonly count: number } },
): void {
  server.post("/admin/hold", async (request) => {
    const rule = HoldRule.parse(request.body);
    holds.setRule(rule);
    return rule;
  });
  server.get("/admin/held", async () => ({ held: holds.list(), counts: holds.counts(), lookUps: lookUps.count }));
  server.post("/admin/release", async (request) => {
    const { operationId } = z.strictObject({ operationId: OperationId.optional() }).parse(request.body ?? {});
    return { released: holds.release(operationId ?? null) };
  });
  server.get("/admin/state/:task", async (request) => {
    const { task } = z.object({ task: TaskName }).parse(request.params);
    return { sha256: stateHash(await loadTaskState(pool, base, task)) };
  });
  server.get("/admin/journal", async (request) => {
    const { task } = z.object({ task: TaskName.optional() }).parse(request.query);
    return { rows: await journalOfTask(pool, task ?? null) };
  });
}

function headerOf(request: FastifyRequest, name: "idempotency-key" | "operation-id"): string {
  const value = OperationId.safeParse(request.headers[name]);
  if (value.success) return value.data;
  throw new RequestError(400, "KEY_MISSING", `a write needs the header ${name} with 1 to 200 characters`);
}

/** Aborts when the connection closes before the reply was written. */
function signalWhenGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

function sendError(error: FastifyError | Error, _request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof z.ZodError) {
    reply.code(400).send({ error: { code: "INVALID_REQUEST", message: z.prettifyError(error) } });
  } else if (error instanceof InvalidCallError) {
    reply.code(400).send({ error: { code: error.code, message: error.message } });
  } else if ("statusCode" in error && error.statusCode !== undefined && error.statusCode < 500) {
    reply.code(error.statusCode).send({ error: { code: error.code, message: error.message } });
  } else {
    // Only the class: a database message may quote a row.
    process.stderr.write(`${JSON.stringify({ level: "error", event: "store.failed", error: error.name })}\n`);
    reply.code(500).send({ error: { code: "INTERNAL", message: "the store failed; the outcome is not known" } });
  }
}
