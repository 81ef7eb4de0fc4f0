import type { Next, Outcome } from "@holdpoint/core";
import { failureKind, type Writes } from "@holdpoint/store";
import { completedCalls } from "./act-on-model.ts";
import { modelAgent } from "./define-agent.ts";
import { storeOutput, type Whole, withoutWhole } from "./output.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** Ends a run, with what its agent makes of it for whoever started it. */
export async function endRun(act: Act, next: Extract<Next, { do: "end" }>): Promise<Stored> {
  const reply = act.run.view.steps.findLast(({ body }) => body.kind === "model_reply")?.body;
  const text = reply?.kind === "model_reply" ? reply.text : "";
  return endWith(act, next.outcome, modelAgent(act.context.agent).result(text, completedCalls(act.run)));
}

/** Ends a run as completed, with what it brings home. */
export async function endWith({ run }: Act, outcome: Outcome, brought: unknown): Promise<Stored> {
  const kept = storeOutput(brought);
  const ended = { type: "Ended", status: "completed", outcome, reason: null } as const;
  try {
    return await run.move([ended], { result: kept.output, artifacts: kept.artifacts, ...wholeOf(kept.whole) });
  } catch (error) {
    if (failureKind(error) !== "data") throw error;
    return run.move([ended], { result: kept.withoutArtifacts, ...wholeOf(withoutWhole(kept)) });
  }
}

function wholeOf({ artifact }: Whole): Pick<Writes, "resultArtifact"> {
  return artifact === undefined ? {} : { resultArtifact: artifact };
}
