import { type Agent, type AgentDefinition, defineAgent } from "@holdpoint/runtime";

/** The agent that writes the closing letter. It has no tools: whatever it writes, nothing is sent. */
export function createWriterAgent({ model }: { readonly model: AgentDefinition["model"] }): Agent {
  return defineAgent({
    name: "refund-writer",
    version: "1",
    model,
    instructions: `You write the closing letters of refund cases. Two or three plain sentences to the customer: what was refunded, for which order, and the refund's reference, exactly as given. Answer with the letter alone. If a letter was sent back, mend what is said to be wrong with it.`,
    tools: [],
    complete: (reply) => (reply.trim() === "" ? null : { kind: "succeeded" }),
  });
}
