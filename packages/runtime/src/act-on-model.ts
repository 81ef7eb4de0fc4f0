import { backoffMs, type Next, type StepBody } from "@holdpoint/core";
import { callModel, type ModelAnswer } from "./call-model.ts";
import { answerOfFailure, reportWith } from "./call-service.ts";
import { decode } from "./codec.ts";
import { type CompletedCall, modelAgent } from "./define-agent.ts";
import type { ServiceTrouble } from "./execute-call.ts";
import { instructionsFor } from "./instructions.ts";
import { judgeCalls } from "./judge-calls.ts";
import type { Stored } from "./owned-run.ts";
import { buildPrompt } from "./prompt.ts";
import type { Act } from "./run-context.ts";

const MODEL_BACKOFF = { firstMs: 1_000, capMs: 60_000 };

/** Asks the model for one turn and commits its reply together with the calls that it asks for. */
export async function actOnModel(act: Act, { turn, service }: Pick<CallModel, "turn" | "service">): Promise<Stored> {
  const { context, run, stop } = act;
  const { log } = context;
  const agent = modelAgent(context.agent);
  const startedMs = context.clock.monotonicMs();
  const told = { ...agent, instructions: instructionsFor(agent, run.view) };
  const answer = await callModel(told, buildPrompt(run.view), stop);
  if (answer.kind === "aborted") return run.reload();
  const durationMs = Math.round(context.clock.monotonicMs() - startedMs);
  const currentStep = `model turn ${turn}`;
  if (answer.kind === "failed") {
    log.warn({ event: "model.failed", runId: run.view.run.id, turn, code: answer.code, durationMs }, "model failed");
    const step = failedStep(run.view.steps, answer, service !== null);
    const answered = troubleOf(answer) ?? answerOfFailure(answer.errorClass);
    return reportWith(act, { service: agent.modelService, answer: answered }, () =>
      run.commit({ steps: [step], currentStep, progress: false }),
    );
  }
  const { id } = run.view.run;
  log.info(
    { event: "model.replied", runId: id, turn, calls: answer.calls.length, durationMs, ...answer.usage },
    "model replied",
  );
  const calls = judgeCalls(agent, answer.calls, turn);
  const outcome = calls.length > 0 ? null : agent.complete(answer.text, completedCalls(run));
  const reply: StepBody = {
    kind: "model_reply",
    turn,
    message: answer.message,
    text: answer.text,
    callIds: calls.map((call) => call.id),
    outcome,
    usage: answer.usage,
  };
  const said = answer.text.trim() === "" ? [] : [{ role: "assistant" as const, author: agent.name, text: answer.text }];
  return reportWith(act, { service: agent.modelService, answer: "well" }, () =>
    run.commit({ steps: [reply], calls, messages: said, currentStep, progress: true }),
  );
}

type CallModel = Extract<Next, { do: "call_model" }>;
type Failed = Extract<ModelAnswer, { kind: "failed" }>;

/** A model that answers with nothing has answered; one that cannot be reached, or fails by itself, is in trouble. */
function troubleOf({ errorClass, code, retryAfterMs }: Failed): ServiceTrouble | null {
  if (errorClass === "throttled") return { reason: "throttled", retryAfterMs };
  return errorClass === "transient" && code !== "empty_reply" ? { reason: "unavailable", retryAfterMs } : null;
}

/** The results of a run's calls so far, as its agent sees them. */
export function completedCalls({ view }: Act["run"]): readonly CompletedCall[] {
  const tools = new Map(view.calls.map((call) => [call.id, call.tool]));
  return view.steps.flatMap(({ body }) => {
    const tool = body.kind === "tool_result" ? tools.get(body.callId) : undefined;
    return body.kind === "tool_result" && tool !== undefined
      ? [{ tool, result: body.result, output: decode(body.output) }]
      : [];
  });
}

function failedStep(steps: Act["run"]["view"]["steps"], answer: Failed, probe: boolean): StepBody {
  const { errorClass, code, retryAfterMs } = answer;
  const before = steps.length - 1 - steps.findLastIndex(({ body }) => body.kind !== "model_failed");
  const retryInMs = retryAfterMs ?? backoffMs(before, MODEL_BACKOFF);
  const failed = { kind: "model_failed", errorClass, code, retryInMs } as const;
  return probe && troubleOf(answer) !== null ? { ...failed, probe: true } : failed;
}
