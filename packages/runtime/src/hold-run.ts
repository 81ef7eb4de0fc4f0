import type { Next } from "@holdpoint/core";
import { approvalRequest } from "./approval-request.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** Stores a hold, with the approval requests that are made in it. */
export function holdRun(
  { context, run }: Act,
  { hold, requests }: Omit<Extract<Next, { do: "hold" }>, "do">,
): Promise<Stored> {
  const { steps, calls, callById } = run.view.history.known;
  const view = { ...run.view, steps, calls };
  const made = requests.map((requested) => approvalRequest(view, { ...requested, agent: context.agent }));
  const subject = callById.get(hold.waitingFor.subject ?? "");
  const writes = subject === undefined ? { requests: made } : { requests: made, currentStep: subject.tool };
  return run.move([{ type: "Held", hold }], writes, hold.waitingFor.reason);
}
