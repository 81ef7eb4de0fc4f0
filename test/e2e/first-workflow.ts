import { bindWorkflow, defineTool } from "@holdpoint/runtime";
import { defineWorkflow } from "@holdpoint/workflow";
import { z } from "zod";

const priceRoom = defineTool({
  name: "price_room",
  description: "Says what a room costs",
  input: z.object({ people: z.int().min(1) }),
  effect: "read",
  execute: async ({ people }) => ({ room: people > 6 ? "Hall" : "Cabin", euros: people * 30 }),
});

const sendOffer = defineTool({
  name: "send_offer",
  description: "Sends an offer to a customer",
  input: z.object({ to: z.string(), text: z.string() }),
  effect: { key: { validForMs: 86_400_000 } },
  execute: async ({ to }, { operationId }) => ({ sentTo: to, reference: operationId }),
});

const roomOffer = defineWorkflow({
  name: "room-offer",
  version: "1",
  input: z.object({ customer: z.email(), people: z.int().min(1).max(200) }),
  nodes: {
    price: {
      kind: "tool",
      tool: { name: "price_room" },
      input: ({ input }) => ({ people: input.people }),
      output: z.object({ room: z.string(), euros: z.int() }),
    },
    limit: {
      kind: "gate",
      gate: "go_no_go",
      after: ["price"],
      judge: ({ need }) => ({ pass: need("price").euros <= 3_000, feedback: "too large for us" }),
      otherwise: "block", // the run ends as completed: blocked, which nothing counts as a success
    },
    release: {
      kind: "human",
      after: ["limit"],
      question: ({ need }) => `Offer the ${need("price").room} for ${need("price").euros} euros?`,
      approvers: { roles: ["manager"] },
    },
    offer: {
      kind: "tool",
      after: ["release"],
      when: ({ need }) => need("release").decision === "approved",
      tool: { name: "send_offer" },
      input: ({ input, need }) => ({ to: input.customer, text: `The ${need("price").room} is yours.` }),
      output: z.object({ sentTo: z.string(), reference: z.string() }),
    },
  },
  result: ({ output }) => ({ sentTo: output("offer")?.sentTo ?? null }),
});

export const openAgents = async () => ({
  agents: [bindWorkflow(roomOffer, { tools: [priceRoom, sendOffer] })],
  close: async () => undefined,
});
