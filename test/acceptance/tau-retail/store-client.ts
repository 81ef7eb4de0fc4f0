import { z } from "zod";
import { TOOL_OFFERS, type ToolName } from "./retail-store.ts";
import type { HoldRule } from "./store-service/reply-holds.ts";

const ToolReply = z.object({ ok: z.boolean(), content: z.string(), errorCode: z.string().nullable() });
const JournalRows = z.object({
  rows: z.array(
    z.object({
      id: z.number(),
      key: z.string(),
      task: z.string(),
      tool: z.string(),
      argumentsSha256: z.string(),
      ok: z.boolean(),
      errorCode: z.string().nullable(),
      resultSha256: z.string(),
      result: z.string(),
      at: z.string(),
    }),
  ),
});
const Held = z.object({
  held: z.array(
    z.object({
      operationId: z.string(),
      task: z.string(),
      tool: z.string(),
      workerPid: z.number().nullable(),
    }),
  ),
  counts: z.object({
    held: z.number(),
    released: z.number(),
    client_gone: z.number(),
    timed_out: z.number(),
  }),
  lookUps: z.number(),
});

/** The service answered that it did not do what was asked. `status` decides what that means: 5xx is not known. */
export class StoreRequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "StoreRequestError";
    this.status = status;
  }
}

/** A call of a tool over HTTP; `operationId` travels in the header that the tool's offer names, reads send none. */
export type StoreCall = {
  readonly task: string;
  readonly tool: ToolName;
  readonly arguments: unknown;
  readonly operationId: string;
  readonly workerPid?: number;
};

type StoreRequest = {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal | undefined;
};

/** The HTTP client of the retail store service: one request per call, nothing is repeated. */
export function createStoreClient(baseUrl: string) {
  const ask = async (path: string, request: StoreRequest = {}): Promise<unknown> => {
    const response = await fetch(new URL(path, baseUrl), {
      ...(request.body === undefined ? {} : { method: "POST", body: JSON.stringify(request.body) }),
      headers: { ...(request.body === undefined ? {} : { "content-type": "application/json" }), ...request.headers },
      signal: request.signal ?? null,
    });
    const text = await response.text();
    if (!response.ok) throw new StoreRequestError(response.status, `${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  };

  return {
    async callTool(call: StoreCall, signal?: AbortSignal) {
      const request = { body: call.arguments, headers: headersOf(call), signal };
      return ToolReply.parse(await ask(`/tasks/${call.task}/tools/${call.tool}`, request));
    },
    /** The look-up: every execution under an operation id. */
    async findExecutions(operationId: string, signal?: AbortSignal) {
      const path = `/journal?key=${encodeURIComponent(operationId)}`;
      return JournalRows.parse(await ask(path, { signal })).rows;
    },
    async holdReplies(rule: z.input<typeof HoldRule>): Promise<void> {
      await ask("/admin/hold", { body: rule });
    },
    async heldReplies() {
      return Held.parse(await ask("/admin/held"));
    },
    /** Lets one held reply go, or all of them; returns how many. */
    async releaseReplies(operationId?: string): Promise<number> {
      const body = operationId === undefined ? {} : { operationId };
      return z.object({ released: z.number() }).parse(await ask("/admin/release", { body })).released;
    },
    async stateHashOf(task: string): Promise<string> {
      return z.object({ sha256: z.string() }).parse(await ask(`/admin/state/${task}`)).sha256;
    },
    /** The journal of one task, or of all. */
    async journalOf(task?: string) {
      return JournalRows.parse(await ask(task === undefined ? "/admin/journal" : `/admin/journal?task=${task}`)).rows;
    },
  };
}

export type StoreClient = ReturnType<typeof createStoreClient>;

function headersOf({ tool, operationId, workerPid }: StoreCall): Record<string, string> {
  const offer = TOOL_OFFERS[tool];
  return {
    ...(offer === "key" ? { "idempotency-key": operationId } : {}),
    ...(offer === "look-up" ? { "operation-id": operationId } : {}),
    ...(workerPid === undefined ? {} : { "worker-pid": String(workerPid) }),
  };
}
