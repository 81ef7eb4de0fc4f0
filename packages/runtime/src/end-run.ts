import type { Next, Outcome } from "@holdpoint/core";
import { failureKind, type Writes } from "@holdpoint/store";
import { modelAgent } from "./define-agent.ts";
import { storeOutput, type Whole, withoutWhole } from "./output.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** Ends a run, with what its agent makes of it for whoever started it. */
export async function endRun(act: Act, next: Extract<Next, { do: "end" }>): Promise<Stored> {
  const { reply } = act.run.view.history.known.totals;
  const text = reply?.body.text ?? "";
  const brought = modelAgent(act.context.agent).result(text, act.run.completedCalls());
  return endWith(act, { outcome: next.outcome, brought });
}

/** How a run ends. */
export interface RunEnd {
  readonly outcome: Outcome;
  readonly brought: unknown;
  /** Its last step, where that is not stored yet. */
  readonly last?: Pick<Writes, "steps" | "messages" | "currentStep">;
}

/** Ends a run as completed, with what it brings home. */
export async function endWith({ run }: Act, { outcome, brought, last = {} }: RunEnd): Promise<Stored> {
  const kept = storeOutput(brought);
  const ended = { type: "Ended", status: "completed", outcome, reason: null } as const;
  try {
    return await run.move([ended], { ...last, result: kept.output, artifacts: kept.artifacts, ...wholeOf(kept.whole) });
  } catch (error) {
    if (failureKind(error) !== "data") throw error;
    return run.move([ended], { ...last, result: kept.withoutArtifacts, ...wholeOf(withoutWhole(kept)) });
  }
}

function wholeOf({ artifact }: Whole): Pick<Writes, "resultArtifact"> {
  return artifact === undefined ? {} : { resultArtifact: artifact };
}
