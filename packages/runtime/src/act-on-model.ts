import { backoffMs, type StepBody } from "@holdpoint/core";
import { callModel, type ModelAnswer } from "./call-model.ts";
import type { CompletedCall } from "./define-agent.ts";
import { judgeCalls } from "./judge-calls.ts";
import type { Stored } from "./owned-run.ts";
import { buildPrompt } from "./prompt.ts";
import type { Act } from "./run-context.ts";

const MODEL_BACKOFF = { firstMs: 1_000, capMs: 60_000 };

/** Asks the model for one turn and commits its reply together with the calls that it asks for. */
export async function actOnModel({ context, run, stop }: Act, turn: number): Promise<Stored> {
  const { agent, log } = context;
  const startedMs = context.clock.monotonicMs();
  const answer = await callModel(agent, buildPrompt(run.view), stop);
  if (answer.kind === "aborted") return run.reload();
  const durationMs = Math.round(context.clock.monotonicMs() - startedMs);
  const currentStep = `model turn ${turn}`;
  if (answer.kind === "failed") {
    log.warn({ event: "model.failed", runId: run.view.run.id, turn, code: answer.code, durationMs }, "model failed");
    return run.commit({ steps: [failedStep(run.view.steps, answer)], currentStep, progress: false });
  }
  const { id, requester } = run.view.run;
  log.info(
    { event: "model.replied", runId: id, turn, calls: answer.calls.length, durationMs, ...answer.usage },
    "model replied",
  );
  const calls = judgeCalls(agent, answer.calls, { turn, requester });
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
  return run.commit({ steps: [reply], calls, messages: said, currentStep, progress: true });
}

function completedCalls({ view }: Act["run"]): readonly CompletedCall[] {
  const tools = new Map(view.calls.map((call) => [call.id, call.tool]));
  return view.steps.flatMap(({ body }) => {
    const tool = body.kind === "tool_result" ? tools.get(body.callId) : undefined;
    return body.kind === "tool_result" && tool !== undefined
      ? [{ tool, result: body.result, output: body.output }]
      : [];
  });
}

function failedStep(
  steps: Act["run"]["view"]["steps"],
  { errorClass, code, retryAfterMs }: Extract<ModelAnswer, { kind: "failed" }>,
): StepBody {
  const before = steps.length - 1 - steps.findLastIndex(({ body }) => body.kind !== "model_failed");
  return { kind: "model_failed", errorClass, code, retryInMs: retryAfterMs ?? backoffMs(before, MODEL_BACKOFF) };
}
