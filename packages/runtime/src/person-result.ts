import type { Call, JsonValue, ResultKind } from "@holdpoint/core";
import type { LoadedRun } from "@holdpoint/store";
import type { PersonOutput } from "@holdpoint/workflow";
import type { Runnable } from "./define-agent.ts";

const DECISIONS = {
  succeeded: "approved",
  answered: "answered",
  rejected: "rejected",
  expired: "expired",
} as const satisfies Partial<Record<ResultKind, PersonOutput<JsonValue>["decision"]>>;

/** Whether a call is a node that asks a person, and is over with their word. */
export function asksPerson(agent: Runnable, call: Call): boolean {
  if (agent.kind !== "workflow") return false;
  const node = agent.workflow.nodes.get(call.tool);
  return node?.kind === "human" || (node?.kind === "gate" && node.gate === "approval");
}

/** What a person's word means for the node that has asked: it has its answer, whatever that is. Null: it is none. */
export function personWord(
  { approvals }: Pick<LoadedRun, "approvals">,
  { call, result }: { readonly call: Call; readonly result: ResultKind },
): JsonValue | null {
  if (!isWord(result)) return null;
  const decision = DECISIONS[result];
  const approval = approvals.findLast(({ callId }) => callId === call.id);
  return {
    decision,
    note: approval?.note ?? null,
    answer: decision === "answered" ? (approval?.answer ?? null) : null,
  };
}

/** Whether the output of a call is a person's word, as `personWord` makes it for its result. */
export function isPersonResult(result: ResultKind, output: JsonValue): boolean {
  if (!isWord(result) || result === "succeeded") return false;
  return output !== null && typeof output === "object" && "decision" in output && "answer" in output;
}

function isWord(result: ResultKind): result is keyof typeof DECISIONS {
  return Object.hasOwn(DECISIONS, result);
}
