import type { PlanInput } from "./next.ts";
import type { Approval, Call } from "./step.ts";

/**
 * Call `callId`, as it runs.
 *
 * @throws {RangeError} the run has no such call.
 */
export function callOf({ history, approvals }: Pick<PlanInput, "history" | "approvals">, callId: string): Call {
  const call = history.known.callById.get(callId);
  if (call === undefined) throw new RangeError(`A step names call ${callId}, which is not among the run's calls`);
  return asItRuns(call, approvals);
}

/** A call with the arguments that a person has made of the model's, and the rule that is for those. */
export function asItRuns(call: Call, approvals: readonly Approval[]): Call {
  const edit = approvals.findLast(({ callId, editedBy }) => callId === call.id && editedBy !== null);
  if (edit === undefined) return call;
  const { args, argsHash, terms } = edit;
  return { ...call, args, argsHash, verdict: { kind: "needs_approval", approval: terms } };
}
