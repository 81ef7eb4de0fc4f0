import type { StepBody } from "@holdpoint/core";

/** A step without what was said or answered: each kind's payload is left out. */
export type StepInShort = WithoutPayload<StepBody>;
type WithoutPayload<Body> = Body extends unknown ? Omit<Body, "message" | "text" | "output" | "outcome"> : never;

/** What a step says, in one short line without payloads. `tool` is the tool of its call, where it has one. */
export function stepLine(step: StepInShort, tool: string | null): string {
  const name = tool ?? "a call";
  switch (step.kind) {
    case "model_reply":
      return `model turn ${step.turn}: ${asked(step.callIds.length)}`;
    case "nodes_started":
      return `turn ${step.turn}: ${step.nodes.map(({ node, settled }) => (settled === null ? `${node} starts` : `${node} is ${settled.state.replaceAll("_", " ")}`)).join(", ")}`;
    case "model_failed":
      return `model request failed (${step.errorClass}, ${step.code})`;
    case "intent":
      return `${name}: attempt ${step.attempt} starts`;
    case "timer_set":
      return `${name}: its timer is set`;
    case "children_started":
      return `${name}: ${step.ordinals.length} of ${step.total} child runs started${step.try === 1 ? "" : ` (try ${step.try})`}`;
    case "call_failed":
      return `${name}: attempt ${step.attempt} failed (${step.errorClass}, ${step.code})`;
    case "did_not_happen":
      return `${name}: attempt ${step.attempt} did not happen, says its look-up`;
    case "effect_pending":
      return `${name}: accepted, not settled yet`;
    case "finding":
      return `${name}: happened after all, says late evidence`;
    case "tool_result":
      return `${name}: ${step.result.replaceAll("_", " ")}`;
    case "message":
      return `read a message from ${step.from}`;
    case "no_answer":
      return "told the agent that nobody answered";
    case "callback":
      return `${name}: the other side reported`;
    case "migration":
      return `${step.by} wants it to go on in version ${step.version}`;
    case "operator":
      return `operator's choice: ${step.choice}${step.callId === null ? "" : ` ${name}`}`;
  }
}

function asked(calls: number): string {
  if (calls === 0) return "no call";
  return calls === 1 ? "asks for 1 call" : `asks for ${calls} calls`;
}
