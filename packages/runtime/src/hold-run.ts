import type { Next } from "@holdpoint/core";
import { approvalRequest } from "./approval-request.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** Stores a hold, with the approval requests that are made in it. */
export function holdRun(
  { context, run }: Act,
  { hold, requests }: Omit<Extract<Next, { do: "hold" }>, "do">,
): Promise<Stored> {
  const made = requests.map((requested) => approvalRequest(run.view, { ...requested, agent: context.agent }));
  const subject = run.view.calls.find(({ id }) => id === hold.waitingFor.subject);
  const writes = subject === undefined ? { requests: made } : { requests: made, currentStep: subject.tool };
  return run.move([{ type: "Held", hold }], writes, hold.waitingFor.reason);
}
