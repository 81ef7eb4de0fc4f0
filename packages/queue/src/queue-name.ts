import { createHash } from "node:crypto";
import type { AgentRef } from "@holdpoint/core";

/**
 * The queue of an agent's version: a readable part and 128 bits of a hash over both names, so that two agents never
 * share a queue however they are spelled. Letters, digits, `-` and `.` only; at most 80 characters.
 */
export function queueName(agent: AgentRef): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([agent.name, agent.version]))
    .digest("hex")
    .slice(0, 32);
  return `${readable(agent.name, 28)}.${readable(agent.version, 16)}.${hash}`;
}

function readable(text: string, length: number): string {
  return text.replace(/[^A-Za-z0-9]+/g, "-").slice(0, length);
}
