import { defineAgent, defineTool, resolveModel } from "@holdpoint/runtime";
import { scriptedModel } from "@holdpoint/testkit/scripted-model";
import { z } from "zod";

const findRoom = defineTool({
  name: "find_room",
  description: "Finds a free room",
  input: z.object({ day: z.string(), people: z.int().min(1) }),
  effect: "read",
  execute: async ({ people }) => ({ room: people > 6 ? "Hall" : "Cabin", price: "120.00 EUR" }),
});

const bookRoom = defineTool({
  name: "book_room",
  description: "Books a meeting room",
  input: z.object({ room: z.string(), day: z.string() }),
  effect: { key: { validForMs: 86_400_000 } }, // the same operation id twice books once
  rules: [{ name: "costs_money", ask: { roles: ["manager"] } }], // so the run waits for a manager
  execute: async ({ room, day }, { operationId }) => ({ booked: room, day, reference: operationId }),
});

const script = scriptedModel([
  { calls: [{ tool: "find_room", input: { day: "Friday", people: 4 } }] },
  { calls: [{ tool: "book_room", input: { room: "Cabin", day: "Friday" } }] },
  { text: "The Cabin is booked for Friday." },
]);

export const openAgents = async (env: NodeJS.ProcessEnv) => ({
  agents: [
    defineAgent({
      name: "room-desk",
      version: "1",
      model: env.MODEL ? resolveModel(env.MODEL, env) : script, // MODEL=anthropic/<model> takes a real one
      instructions: "You book meeting rooms. Find a free one first, then book it.",
      tools: [findRoom, bookRoom],
      complete: (_reply, results) => (results.some(({ tool }) => tool === "book_room") ? { kind: "succeeded" } : null),
    }),
  ],
  close: async () => undefined,
});
