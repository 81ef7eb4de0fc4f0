import type { LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import {
  closingText,
  createRecordedModel,
  openingMessage,
  recordedCallId,
  UnexpectedPromptError,
} from "../tau-retail/recorded-model.ts";
import type { RetailTask } from "../tau-retail/retail-data.ts";

const task: RetailTask = {
  id: "v1-dev-3",
  user_id: "anna_1",
  instruction: "Cancel my order.",
  actions: [
    { name: "get_order_details", arguments: { order_id: "#P" } },
    { name: "cancel_pending_order", arguments: { order_id: "#P", reason: "no longer needed" } },
  ],
  outputs: ["30.30", "card"],
};
const silent: RetailTask = { ...task, id: "24", actions: [], outputs: [] };
const model = createRecordedModel([task, silent]);

type Turn = readonly LanguageModelV4Prompt[number][];
const opening = (of: RetailTask): Turn => [
  { role: "system", content: "Follow the policy." },
  { role: "user", content: [{ type: "text", text: openingMessage(of) }] },
];
const called = (index: number): Turn => [
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: recordedCallId(task, index), toolName: "any", input: {} }],
  },
];
const answered = (index: number): Turn => [
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: recordedCallId(task, index),
        toolName: "any",
        output: { type: "text", value: "Error: Order not found" },
      },
    ],
  },
];
const history = (count: number): Turn =>
  Array.from({ length: count }, (_, index) => [...called(index), ...answered(index)]).flat();

async function generate(...turns: Turn[]) {
  return await model.doGenerate({ prompt: turns.flat() });
}

async function streamed(...turns: Turn[]): Promise<LanguageModelV4StreamPart[]> {
  const { stream } = await model.doStream({ prompt: turns.flat() });
  return await Array.fromAsync(stream);
}

describe("createRecordedModel", () => {
  test.each([0, 1])("calls action %i when so many results are there, whatever they say", async (index) => {
    const reply = await generate(opening(task), history(index));
    const action = task.actions[index];
    expect(reply.content).toEqual([
      {
        type: "tool-call",
        toolCallId: recordedCallId(task, index),
        toolName: action?.name,
        input: JSON.stringify(action?.arguments),
      },
    ]);
    expect(reply.finishReason.unified).toBe("tool-calls");
  });

  test("says the closing text with every output after the last call", async () => {
    const reply = await generate(opening(task), history(2));
    expect(reply).toMatchObject({
      content: [{ type: "text", text: closingText(task) }],
      finishReason: { unified: "stop" },
    });
    for (const output of task.outputs) expect(closingText(task)).toContain(output);
  });

  test("closes a task without actions at once", async () => {
    expect((await generate(opening(silent))).content).toEqual([{ type: "text", text: closingText(silent) }]);
  });

  test("gives the same reply to the same prompt, from another instance too", async () => {
    const prompt = [...opening(task), ...history(1)];
    const again = createRecordedModel([silent, task]);
    expect(await again.doGenerate({ prompt })).toEqual(await model.doGenerate({ prompt }));
  });

  test("ignores what the user says later", async () => {
    const later: Turn = [{ role: "user", content: [{ type: "text", text: "Task 24, please" }] }];
    expect((await generate(opening(task), history(1), later)).content[0]).toMatchObject({
      toolCallId: recordedCallId(task, 1),
    });
  });

  test("streams a call as its input and the call, between start and finish", async () => {
    const parts = await streamed(opening(task), history(1));
    const whole = await generate(opening(task), history(1));
    expect(parts.map((part) => part.type)).toEqual([
      "stream-start",
      "response-metadata",
      "tool-input-start",
      "tool-input-delta",
      "tool-input-end",
      "tool-call",
      "finish",
    ]);
    expect(parts[5]).toEqual(whole.content[0]);
    expect(parts.at(-1)).toEqual({ type: "finish", finishReason: whole.finishReason, usage: whole.usage });
  });

  test("streams the closing text in pieces that make up the whole", async () => {
    const parts = await streamed(opening(task), history(2));
    const text = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])).join("");
    expect(text).toBe(closingText(task));
  });

  test.each<[string, Turn]>([
    ["a call without its result", called(0)],
    ["a result without its call", answered(0)],
    ["two results for one call", [...history(1), ...answered(0)]],
    ["a call made twice", [...history(1), ...history(1)]],
    ["calls out of order", [...called(1), ...answered(1)]],
    ["more calls than the recording has", [...history(2), ...called(2), ...answered(2)]],
  ])("refuses a history with %s", async (_what, turns) => {
    await expect(generate(opening(task), turns)).rejects.toThrow(UnexpectedPromptError);
  });

  test("refuses a task that it has no recording of, and a message that names none", async () => {
    await expect(generate(opening({ ...task, id: "999" }))).rejects.toThrow("no task 999 is recorded");
    await expect(generate([{ role: "user", content: [{ type: "text", text: "Hello" }] }])).rejects.toThrow(
      UnexpectedPromptError,
    );
  });

  test("stops before it answers when the caller has given up", async () => {
    const abortSignal = AbortSignal.abort();
    await expect(model.doStream({ prompt: [...opening(task)], abortSignal })).rejects.toThrow("abort");
  });
});
