// A user's own agent: it sends a parcel, through a service that takes each operation once.

import { type Agent, defineAgent, defineTool } from "@holdpoint/runtime";
import { scriptedModel } from "@holdpoint/testkit/scripted-model";
import { z } from "zod";

/** Where parcels are handed in: gives the parcel's number, the same one for the same operation. */
export type HandIn = (operationId: string, to: string) => Promise<string>;

export function createParcelAgent(handIn: HandIn): Agent {
  const send = defineTool({
    name: "send_parcel",
    description: "Sends a parcel",
    input: z.object({ to: z.string() }),
    effect: { key: { validForMs: 86_400_000 } },
    execute: ({ to }, { operationId }) => handIn(operationId, to),
  });
  return defineAgent({
    name: "parcels",
    version: "1",
    model: scriptedModel([{ calls: [{ tool: "send_parcel", input: { to: "Mara" } }] }, { text: "It is on its way." }]),
    instructions: "You send parcels.",
    tools: [send],
    complete: () => ({ kind: "succeeded" }),
  });
}
