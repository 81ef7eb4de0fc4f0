import { backoffMs, endWithReply, type Next, type Outcome, type StepBody } from "@holdpoint/core";
import { callModel, type ModelAnswer } from "./call-model.ts";
import { answerOfFailure, reportWith } from "./call-service.ts";
import { modelAgent } from "./define-agent.ts";
import { endWith, type RunEnd } from "./end-run.ts";
import type { ServiceTrouble } from "./execute-call.ts";
import { instructionsFor } from "./instructions.ts";
import { judgeCalls } from "./judge-calls.ts";
import { nameOf } from "./log.ts";
import { mayPass, type Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

const MODEL_BACKOFF = { firstMs: 1_000, capMs: 60_000 };

/** Asks the model for one turn and commits its reply together with the calls that it asks for. */
export async function actOnModel(act: Act, { turn, service }: Pick<CallModel, "turn" | "service">): Promise<Stored> {
  const { context, run, stop } = act;
  const { log } = context;
  const agent = modelAgent(context.agent);
  const startedMs = context.clock.monotonicMs();
  const told = { ...agent, instructions: instructionsFor(agent, run.view) };
  const answer = await callModel(told, run.prompt(), stop);
  if (answer.kind === "aborted") return run.reload();
  const durationMs = Math.round(context.clock.monotonicMs() - startedMs);
  const currentStep = `model turn ${turn}`;
  if (answer.kind === "failed") {
    log.warn({ event: "model.failed", runId: run.view.run.id, turn, code: answer.code, durationMs }, "model failed");
    const step = failedStep(run.view.history.known.totals.modelFailures.count, answer, service !== null);
    const answered = troubleOf(answer) ?? answerOfFailure(answer.errorClass);
    return reportWith(act, { service: agent.modelService, answer: answered }, () =>
      run.commit({ steps: [step], currentStep, progress: false }),
    );
  }
  // The run's steps and its timeline tell it as well.
  log.debug(
    { event: "model.replied", runId: run.view.run.id, turn, calls: answer.calls.length, durationMs, ...answer.usage },
    "model replied",
  );
  const calls = judgeCalls(agent, answer.calls, turn);
  const outcome = calls.length > 0 ? null : agent.complete(answer.text, run.completedCalls());
  const reply: StepBody = {
    kind: "model_reply",
    turn,
    message: answer.message,
    text: answer.text,
    callIds: calls.map((call) => call.id),
    outcome,
    usage: answer.usage,
  };
  const messages =
    answer.text.trim() === "" ? [] : [{ role: "assistant" as const, author: agent.name, text: answer.text }];
  const { stepSeq } = run.view.run;
  const ended = calls.length > 0 ? null : endWithReply(run.planInput(), outcome);
  return reportWith(act, { service: agent.modelService, answer: "well" }, async () => {
    if (ended !== null) {
      const stored = await tryToEnd(act, ended.outcome, { steps: [reply], messages, currentStep });
      if (stored !== null && stored.result !== "changed") return stored;
      // A step has come in between: the reply has not seen it, and the model is asked again.
      if (run.view.run.stepSeq !== stepSeq) return { result: "changed" };
    }
    return run.commit({ steps: [reply], calls, messages, currentStep, progress: true });
  });
}

/**
 * Ends the run with the reply that ends it, in one statement. Null where that failed: the reply is stored by itself then, and
 * what fails again is told where the run is ended.
 */
async function tryToEnd(act: Act, outcome: Outcome, last: RunEnd["last"] & object): Promise<Stored | null> {
  const [reply] = last.steps ?? [];
  const text = reply?.kind === "model_reply" ? reply.text : "";
  const { result } = modelAgent(act.context.agent);
  let brought: unknown;
  try {
    brought = result(text, act.run.completedCalls());
  } catch (error) {
    return notEnded(act, error);
  }
  return endWith(act, { outcome, brought, last }).catch((error: unknown) => {
    if (mayPass(error)) throw error;
    return notEnded(act, error);
  });
}

function notEnded({ context, run }: Act, error: unknown): null {
  const line = { event: "run.not_ended_with_reply", runId: run.view.run.id, error: nameOf(error) };
  context.log.warn(line, "run not ended with reply");
  return null;
}

type CallModel = Extract<Next, { do: "call_model" }>;
type Failed = Extract<ModelAnswer, { kind: "failed" }>;

/** A model that answers with nothing has answered; one that cannot be reached, or fails by itself, is in trouble. */
function troubleOf({ errorClass, code, retryAfterMs }: Failed): ServiceTrouble | null {
  if (errorClass === "throttled") return { reason: "throttled", retryAfterMs };
  return errorClass === "transient" && code !== "empty_reply" ? { reason: "unavailable", retryAfterMs } : null;
}

/** @param before how many of its requests have failed in a row. */
function failedStep(before: number, answer: Failed, probe: boolean): StepBody {
  const { errorClass, code, retryAfterMs } = answer;
  const retryInMs = retryAfterMs ?? backoffMs(before, MODEL_BACKOFF);
  const failed = { kind: "model_failed", errorClass, code, retryInMs } as const;
  return probe && troubleOf(answer) !== null ? { ...failed, probe: true } : failed;
}
