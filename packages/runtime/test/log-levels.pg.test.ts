import { scriptedModel } from "@holdpoint/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool } from "../src/index.ts";
import { type Fleet, openFleet } from "./fleet.ts";
import { findOrder } from "./parts.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});

afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
});

const DEBUG = 20;
const INFO = 30;

test("what goes well in every run is for whoever looks closely; who looks after the fleet hears of effects and failures", async () => {
  const lines: { readonly event: string; readonly level: number; readonly tool?: string }[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(JSON.parse(line)) });
  const breakOnce = defineTool({
    name: "break_once",
    description: "Fails once",
    input: z.object({}),
    effect: "read",
    execute: async (_input, { attempt }) => {
      if (attempt === 1) throw new Error("away");
      return {};
    },
  });
  const sendMail = defineTool({
    name: "send_mail",
    description: "Sends a mail",
    input: z.object({}),
    effect: { key: { validForMs: 60_000 } },
    execute: async () => ({}),
  });
  const calls = [
    { tool: "find_order", input: { order: "4411" } },
    { tool: "break_once", input: {} },
    { tool: "send_mail", input: {} },
  ];
  const agent = defineAgent({
    name: "talker",
    version: "1",
    model: scriptedModel([{ calls }, { text: "Done" }]),
    instructions: "You talk.",
    tools: [findOrder, breakOnce, sendMail],
    complete: () => ({ kind: "succeeded" }),
  });
  await fleet.start(agent, { log });
  const { id } = await fleet.submit(agent);
  await fleet.untilStatus(id, "completed");
  const told = lines.map(({ event, level, tool = "" }) => [event, tool, level]);
  expect(told).toEqual([
    ["run.taken_up", "", INFO],
    ["model.replied", "", DEBUG],
    ["attempt.done", "find_order", DEBUG],
    ["attempt.failed", "break_once", INFO],
    ["attempt.done", "break_once", DEBUG],
    ["attempt.done", "send_mail", INFO],
    ["model.replied", "", DEBUG],
  ]);
});
