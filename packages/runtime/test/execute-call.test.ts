import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { executeCall, lookUp, pollSettlement } from "../src/execute-call.ts";
import { defineTool, type LookUp, type Settled, type ToolContext, ToolError } from "../src/index.ts";
import { aCall, UNSAFE } from "./parts.ts";

type Execute = (input: { order: string }, context: ToolContext) => Promise<string>;

const READ = { kind: "read" } as const;
const RUN_ID = "0198c0de-0000-7000-8000-000000000001";
const UNAVAILABLE = { reason: "unavailable", retryAfterMs: null } as const;
const never = () => new Promise<never>(() => undefined);

interface Setting {
  readonly effect?: typeof READ | typeof UNSAFE;
  readonly stop?: AbortSignal;
  readonly remainingMs?: number;
  readonly abortable?: boolean;
}

function run(
  execute: Execute,
  { effect = READ, stop = new AbortController().signal, remainingMs = 1_000, abortable = false }: Setting = {},
) {
  const tool = defineTool({
    name: "find_order",
    description: "",
    input: z.object({ order: z.string() }),
    effect: "read",
    abortable,
    execute,
    externalRef: (output) => `ref ${output.trim()}`,
  });
  const call = aCall({ effect });
  return executeCall({ tool, call, attempt: 2, runId: RUN_ID, requester: "alice", stop, remainingMs });
}

/** A tool that comes back when the test says so, whatever its signal. */
function held() {
  const end = Promise.withResolvers<string>();
  return { ...end, execute: () => end.promise };
}

describe("executeCall", () => {
  test("gives the tool its frozen arguments and who, what and until when", async () => {
    let given: unknown;
    const outcome = await run(async (input, context) => {
      given = { input, ...context };
      return "found";
    });
    expect(outcome).toEqual({ kind: "done", output: "found", externalRef: "ref found" });
    expect(given).toMatchObject({
      input: { order: "4411" },
      operationId: "op_1",
      attempt: 2,
      timeoutMs: 1_000,
      requester: "alice",
      runId: expect.stringMatching(/^run_/),
    });
  });

  test("waits no longer than the deadline for a tool that ignores its signal", async () => {
    expect(await run(never, { remainingMs: 30 })).toMatchObject({
      kind: "failed",
      errorClass: "transient",
      code: "timeout",
    });
    expect(await run(never, { remainingMs: 30, effect: UNSAFE })).toMatchObject({ kind: "unknown", code: "timeout" });
  });

  test("ends a read at a stop, and leaves an effect to end", async () => {
    const stop = new AbortController();
    const begun = Promise.withResolvers<void>();
    const read = run(
      async (_input, { signal }) => {
        begun.resolve();
        await sleep(10_000, undefined, { signal });
        return "";
      },
      { stop: stop.signal },
    );
    const effect = run(
      async (_input, { signal }) => {
        await read;
        return signal.aborted ? "aborted" : "sent";
      },
      { stop: stop.signal, effect: UNSAFE },
    );
    await begun.promise;
    stop.abort();
    expect(await read).toEqual({ kind: "aborted" });
    expect(await effect).toMatchObject({ kind: "done", output: "sent" });
  });

  test("breaks an abortable effect off at a stop: nobody knows whether it acted", async () => {
    const stop = new AbortController();
    const { execute, resolve } = held();
    const effect = run(execute, { stop: stop.signal, effect: UNSAFE, abortable: true });
    stop.abort();
    const outcome = await effect;
    expect(outcome).toMatchObject({ kind: "unknown", code: "stopped", trouble: null });
    resolve("sent");
    const late = outcome.kind === "unknown" ? await outcome.afterwards : null;
    expect(late).toEqual({ kind: "done", output: "sent", externalRef: "ref sent" });
  });

  test("gives what an effect brings after its deadline: it is never unseen", async () => {
    const late = async (finish: (tool: ReturnType<typeof held>) => void) => {
      const tool = held();
      const outcome = await run(tool.execute, { remainingMs: 10, effect: UNSAFE });
      expect(outcome).toMatchObject({ kind: "unknown", code: "timeout", trouble: UNAVAILABLE });
      finish(tool);
      return outcome.kind === "unknown" ? outcome.afterwards : null;
    };
    expect(await late(({ resolve }) => resolve("sent"))).toMatchObject({ kind: "done", output: "sent" });
    const refused = new ToolError("no", { errorClass: "refused", code: "e1" });
    expect(await late(({ reject }) => reject(refused))).toMatchObject({ kind: "failed", code: "e1" });
    expect(await late(({ reject }) => reject(new Error("cut")))).toBeNull();
  });

  test("says that an effect happened although its name cannot be read", async () => {
    const noText = async () => ({}) as string;
    expect(await run(noText, { effect: UNSAFE })).toEqual({ kind: "done", output: {}, externalRef: null });
  });

  test.each(["transient", "throttled", "refused", "caller"] as const)(
    "takes a tool's word that it failed: %s",
    async (errorClass) => {
      const fail = async () => {
        throw new ToolError("no", { errorClass, code: "e1", retryAfterMs: 9 });
      };
      const reasons = { transient: "unavailable", throttled: "throttled", refused: null, caller: null } as const;
      const reason = reasons[errorClass];
      const trouble = reason === null ? null : { reason, retryAfterMs: 9 };
      const failed = { kind: "failed", errorClass, code: "e1", message: "no", retryAfterMs: 9, trouble };
      expect(await run(fail)).toEqual(failed);
      expect(await run(fail, { effect: UNSAFE })).toEqual(failed);
    },
  );

  test("knows nothing of an effect that threw anything else", async () => {
    const unknown = async () => {
      throw new ToolError("cut", { errorClass: "unknown_outcome", code: "cut_off" });
    };
    const lost = { kind: "unknown", code: "cut_off", trouble: UNAVAILABLE, afterwards: null };
    expect(await run(unknown, { effect: UNSAFE })).toEqual(lost);
    expect(await run(unknown)).toMatchObject({ kind: "failed", errorClass: "transient", code: "cut_off" });
    const bug: Execute = () => {
      throw new TypeError("secret of 4411");
    };
    const broken = { kind: "unknown", code: "unexpected_error", trouble: null, afterwards: null };
    expect(await run(bug, { effect: UNSAFE })).toEqual(broken);
    expect(JSON.stringify(await run(bug))).not.toContain("secret");
  });

  test("knows by its code, or that of its cause, that a service could not be reached", async () => {
    const code = (name: string) => Object.assign(new Error("secret"), { code: name });
    const fail = (error: unknown) => run(() => Promise.reject(error), { effect: UNSAFE });
    expect(await fail(new TypeError("fetch failed", { cause: code("ECONNREFUSED") }))).toMatchObject({
      code: "unexpected_error",
      trouble: UNAVAILABLE,
    });
    expect(await fail(code("UND_ERR_SOCKET"))).toMatchObject({ trouble: UNAVAILABLE });
    expect(await fail(code("ERR_INVALID_ARG_TYPE"))).toMatchObject({ trouble: null });
    expect(await fail("ECONNREFUSED")).toMatchObject({ trouble: null });
  });
});

describe("lookUp", () => {
  const call = aCall({ effect: UNSAFE, timeoutMs: 40 });

  function ask(reconcile: () => Promise<LookUp<string>>) {
    const tool = defineTool({
      name: "find_order",
      description: "",
      input: z.object({ order: z.string() }),
      effect: { lookUp: {} },
      execute: async () => "sent",
      reconcile,
      externalRef: (output) => `ref ${output}`,
    });
    const stop = new AbortController().signal;
    return lookUp({
      tool,
      call,
      attempt: 1,
      runId: RUN_ID,
      requester: "alice",
      stop,
      remainingMs: 40,
    });
  }

  test("gives what was found, with the other side's name for it", async () => {
    expect(await ask(async () => ({ answer: "happened", output: "re_1" }))).toEqual({
      found: { answer: "happened", output: "re_1" },
      externalRef: "ref re_1",
      trouble: null,
    });
    expect(await ask(async () => ({ answer: "did_not_happen" }))).toMatchObject({
      found: { answer: "did_not_happen" },
    });
  });

  test("knows nothing when the look-up fails or does not come back", async () => {
    const unknown = { found: { answer: "unknown" }, externalRef: null };
    const broken = async () => {
      throw new Error("a bug");
    };
    expect(await ask(broken)).toEqual({ ...unknown, trouble: null });
    expect(await ask(never)).toEqual({ ...unknown, trouble: UNAVAILABLE });
  });
});

describe("pollSettlement", () => {
  const call = aCall({ effect: UNSAFE, timeoutMs: 40 });

  function poll(ask: (accepted: string) => Promise<Settled<string>>, stop = new AbortController().signal) {
    const tool = defineTool({
      name: "find_order",
      description: "",
      input: z.object({ order: z.string() }),
      effect: "unsafe",
      execute: async (): Promise<string> => "pending",
      settlement: { isPending: () => true, poll: (_input, { output }) => ask(output) },
    });
    return pollSettlement(
      { tool, call, attempt: 1, runId: RUN_ID, requester: "alice", stop, remainingMs: 40 },
      "accepted",
    );
  }

  test("gives the tool what was accepted, and its answer", async () => {
    const answer = { answer: "settled", output: "re_1" } as const;
    let asked: string | null = null;
    const polled = await poll(async (accepted) => {
      asked = accepted;
      return answer;
    });
    expect(polled).toEqual({ answer, failed: false, trouble: null });
    expect(asked).toBe("accepted");
  });

  test("takes it for still pending when the poll fails, does not come back or is stopped", async () => {
    const pending = { answer: { answer: "still_pending" }, failed: true };
    const busy = new ToolError("busy", { errorClass: "throttled", code: "http_429", retryAfterMs: 7 });
    expect(await poll(() => Promise.reject(busy))).toEqual({
      ...pending,
      trouble: { reason: "throttled", retryAfterMs: 7 },
    });
    expect(await poll(never)).toEqual({ ...pending, trouble: UNAVAILABLE });
    expect(await poll(never, AbortSignal.abort())).toEqual({ ...pending, trouble: null });
  });
});
