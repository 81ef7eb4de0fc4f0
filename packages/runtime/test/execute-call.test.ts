import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { executeCall, lookUp } from "../src/execute-call.ts";
import { defineTool, type LookUp, type ToolContext, ToolError } from "../src/index.ts";
import { aCall, UNSAFE } from "./parts.ts";

type Execute = (input: { order: string }, context: ToolContext) => Promise<string>;

const READ = { kind: "read" } as const;
const never = () => new Promise<never>(() => undefined);

function run(
  execute: Execute,
  { effect = READ as typeof READ | typeof UNSAFE, stop = new AbortController().signal, remainingMs = 1_000 } = {},
) {
  const tool = defineTool({
    name: "find_order",
    description: "",
    input: z.object({ order: z.string() }),
    effect: "read",
    execute,
    externalRef: (output) => `ref ${output}`,
  });
  return executeCall({
    tool,
    call: aCall({ effect }),
    attempt: 2,
    runId: "0198c0de-0000-7000-8000-000000000001",
    requester: "alice",
    stop,
    remainingMs,
  });
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
    expect(await run(never, { remainingMs: 30, effect: UNSAFE })).toEqual({ kind: "unknown", code: "timeout" });
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

  test.each(["transient", "throttled", "refused", "caller"] as const)(
    "takes a tool's word that it failed: %s",
    async (errorClass) => {
      const fail = async () => {
        throw new ToolError("no", { errorClass, code: "e1", retryAfterMs: 9 });
      };
      const failed = { kind: "failed", errorClass, code: "e1", message: "no", retryAfterMs: 9 };
      expect(await run(fail)).toEqual(failed);
      expect(await run(fail, { effect: UNSAFE })).toEqual(failed);
    },
  );

  test("knows nothing of an effect that threw anything else", async () => {
    const unknown = async () => {
      throw new ToolError("cut", { errorClass: "unknown_outcome", code: "cut_off" });
    };
    expect(await run(unknown, { effect: UNSAFE })).toEqual({ kind: "unknown", code: "cut_off" });
    expect(await run(unknown)).toMatchObject({ kind: "failed", errorClass: "transient", code: "cut_off" });
    const bug: Execute = () => {
      throw new TypeError("secret of 4411");
    };
    expect(await run(bug, { effect: UNSAFE })).toEqual({ kind: "unknown", code: "unexpected_error" });
    expect(JSON.stringify(await run(bug))).not.toContain("secret");
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
      runId: "0198c0de-0000-7000-8000-000000000001",
      requester: "alice",
      stop,
      remainingMs: 40,
    });
  }

  test("gives what was found, with the other side's name for it", async () => {
    expect(await ask(async () => ({ answer: "happened", output: "re_1" }))).toEqual({
      found: { answer: "happened", output: "re_1" },
      externalRef: "ref re_1",
    });
    expect(await ask(async () => ({ answer: "did_not_happen" }))).toMatchObject({
      found: { answer: "did_not_happen" },
    });
  });

  test("knows nothing when the look-up fails or does not come back", async () => {
    const unknown = { found: { answer: "unknown" }, externalRef: null };
    expect(
      await ask(async () => {
        throw new Error("down");
      }),
    ).toEqual(unknown);
    expect(await ask(never)).toEqual(unknown);
  });
});
