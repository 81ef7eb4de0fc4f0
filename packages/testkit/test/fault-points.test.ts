import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { Pool } from "pg";
import { describe, expect, test } from "vitest";
import { breakConnection, type FaultPoint, hang, openFaultPoints, scriptedModel } from "../src/index.ts";

const fail = (): never => {
  throw new Error("planned");
};

function aTool() {
  const done: string[] = [];
  return {
    done,
    name: "send",
    description: "Sends",
    execute: async (input: { order: string }, { attempt }: { attempt: number }) => {
      done.push(`${input.order} ${attempt}`);
      return "sent";
    },
    reconcile: async () => "happened",
  };
}

const PROMPT: LanguageModelV4CallOptions = { prompt: [{ role: "user", content: [{ type: "text", text: "hello" }] }] };

async function readAll(stream: ReadableStream<{ readonly type: string }>): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { type } of stream) types.push(type);
  return types;
}

describe("openFaultPoints", () => {
  test("counts what is passed and lets it work as before", async () => {
    const points = openFaultPoints();
    const tool = aTool();
    const watched = points.tool(tool);
    expect(await watched.execute({ order: "4411" }, { attempt: 2 })).toBe("sent");
    expect(await watched.reconcile()).toBe("happened");
    await points.reach("mine");
    expect(tool.done).toEqual(["4411 2"]);
    expect(watched.description).toBe("Sends");
    expect(points.passed).toEqual([
      "tool:send:before",
      "tool:send:after",
      "look_up:send:before",
      "look_up:send:after",
      "mine",
    ]);
  });

  test("has the fault at the point with this number, and nowhere else", async () => {
    const met: FaultPoint[] = [];
    const points = openFaultPoints({ at: 3, fault: (point) => void met.push(point) });
    for (const name of ["a", "b", "a", "b"]) await points.reach(name);
    expect(met).toEqual([{ number: 3, name: "a", sending: null }]);
  });

  test("has it at the first passing of a name", async () => {
    const points = openFaultPoints({ at: "b", fault: fail });
    await points.reach("a");
    await expect(points.reach("b")).rejects.toThrow("planned");
    await points.reach("b");
    expect(points.passed).toEqual(["a", "b", "b"]);
  });

  test("hangs where the fault does", async () => {
    const points = openFaultPoints({ at: "a", fault: hang });
    const first = await Promise.race([points.reach("a").then(() => "passed"), points.reach("b").then(() => "hangs")]);
    expect(first).toBe("hangs");
  });
});

describe("the points of a tool", () => {
  test("keep it from acting where the fault is before it", async () => {
    const tool = aTool();
    const watched = openFaultPoints({ at: "tool:send:before", fault: fail }).tool(tool);
    await expect(watched.execute({ order: "4411" }, { attempt: 1 })).rejects.toThrow("planned");
    expect(tool.done).toEqual([]);
  });

  test("lose its answer where the fault is after it", async () => {
    const tool = aTool();
    const watched = openFaultPoints({ at: "tool:send:after", fault: fail }).tool(tool);
    await expect(watched.execute({ order: "4411" }, { attempt: 1 })).rejects.toThrow("planned");
    expect(tool.done).toEqual(["4411 1"]);
  });

  test("are passed by one that fails, too", async () => {
    const points = openFaultPoints();
    const watched = points.tool({ name: "send", execute: async () => fail() });
    await expect(watched.execute()).rejects.toThrow("planned");
    expect(points.passed).toEqual(["tool:send:before", "tool:send:after"]);
  });
});

describe("the points of a model", () => {
  test("stand before a streamed reply, in it and behind it, and leave its parts alone", async () => {
    const points = openFaultPoints();
    const model = scriptedModel([{ text: "hello" }]);
    const plain = await readAll((await model.doStream(PROMPT)).stream);
    const { stream } = await points.model(model).doStream(PROMPT);
    expect(points.passed).toEqual(["model:before"]);
    expect(await readAll(stream)).toEqual(plain);
    expect(points.passed).toEqual(["model:before", "model:streaming", "model:after"]);
  });

  test("stand around a reply that is not streamed", async () => {
    const points = openFaultPoints();
    await points.model(scriptedModel([{ text: "hello" }])).doGenerate(PROMPT);
    expect(points.passed).toEqual(["model:before", "model:after"]);
  });

  test.each(["model:streaming", "model:after"])("break the stream at %s", async (at) => {
    const points = openFaultPoints({ at, fault: breakConnection });
    const { stream } = await points.model(scriptedModel([{ text: "hello" }])).doStream(PROMPT);
    await expect(readAll(stream)).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  test("leave everything else of it as it is", () => {
    const model = openFaultPoints().model(scriptedModel([]));
    expect(model).toMatchObject({ provider: "holdpoint-testkit", modelId: "scripted", specificationVersion: "v4" });
  });
});

describe("the points of an agent", () => {
  test("are those of its model and of each of its tools", async () => {
    const points = openFaultPoints();
    const agent = { name: "desk", model: scriptedModel([{ text: "hello" }]), tools: new Map([["send", aTool()]]) };
    const watched = points.agent(agent);
    await watched.model.doGenerate(PROMPT);
    await watched.tools.get("send")?.execute({ order: "4411" }, { attempt: 1 });
    expect(watched.name).toBe("desk");
    expect(points.passed).toEqual(["model:before", "model:after", "tool:send:before", "tool:send:after"]);
  });
});

describe("the points of a fetch", () => {
  const asked: string[] = [];
  const answering: typeof fetch = async (input) => {
    asked.push(String(input));
    return new Response("ok");
  };

  test("say what is about to be sent", async () => {
    const met: FaultPoint[] = [];
    const points = openFaultPoints({ at: "pay:request", fault: (point) => void met.push(point) });
    const headers = { "idempotency-key": "op_1" };
    const response = await points.fetch(answering, "pay")("http://pay/refunds", {
      method: "POST",
      headers,
      body: "a=1",
    });
    expect(await response.text()).toBe("ok");
    expect(points.passed).toEqual(["pay:request", "pay:reply"]);
    expect(met[0]?.sending).toMatchObject({
      kind: "request",
      url: "http://pay/refunds",
      method: "POST",
      headers: { "idempotency-key": "op_1" },
      body: "a=1",
    });
  });

  test.each([
    ["provider:request", 0],
    ["provider:reply", 1],
  ])("break the connection at %s, with %s requests sent", async (at, sent) => {
    asked.length = 0;
    const watched = openFaultPoints({ at, fault: breakConnection }).fetch(answering);
    await expect(watched("http://pay/refunds")).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(asked).toHaveLength(sent);
  });
});

describe("the points of a pool", () => {
  test("refuse a callback, which they would not wait for", async () => {
    const pool = openFaultPoints().pool(new Pool());
    const query = pool.query.bind(pool) as unknown as (text: string, callback: () => void) => Promise<unknown>;
    await expect(query("select 1", () => undefined)).rejects.toThrow("without callback");
  });
});
