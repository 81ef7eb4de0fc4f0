import {
  bothHolds,
  type Call,
  type Hold,
  type JsonValue,
  type Next,
  operatorHold,
  pollDelayMs,
  recordOf,
} from "@holdpoint/core";
import { type Artifact, failureKind } from "@holdpoint/store";
import { passThen, reportWith, waitForService } from "./call-service.ts";
import type { Tool } from "./define-tool.ts";
import { type Polled, pollSettlement } from "./execute-call.ts";
import { failureOutput, storeOutput, type Whole, withoutWhole } from "./output.ts";
import type { OwnedRun, Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

type Poll = Extract<Next, { do: "poll" }>;

/**
 * Follows an effect that the other side has accepted and settles later: asks the tool what has become of it, and waits
 * for the next time to ask, or for a callback, while nothing has.
 */
export async function actOnSettlement(act: Act, next: Poll): Promise<Stored> {
  const { context, run } = act;
  const { call } = next;
  // It has only just been accepted: whoever claims the run after the first wait asks.
  if (acceptedHere(run, call) && !isReported(run, call)) return holdUntilPoll(act, next);
  const tool = context.agent.tools.get(call.tool);
  if (tool === undefined) return run.move([{ type: "Held", hold: operatorHold("incompatible_tool", call.id) }]);
  const service = run.troubledService(call.service);
  const passing = { service, probeMs: call.timeoutMs, wait: waitForService(act, call) };
  return passThen(act, passing, () => poll(act, next, tool));
}

async function poll(act: Act, next: Poll, tool: Tool): Promise<Stored> {
  const { context, run, stop } = act;
  const { call, output: accepted } = next;
  const { id: runId, requester } = run.view.run;
  const asked = { tool, call, attempt: 1, runId, requester, stop, remainingMs: call.timeoutMs };
  const polled = await pollSettlement(asked, accepted);
  if (!context.lease.isValid()) return { result: "replaced" };
  if (stop.aborted && polled.answer.answer === "still_pending") return run.reload();
  const { answer } = polled.answer;
  context.log.info({ event: "effect.polled", runId, tool: call.tool, callId: call.id, answer }, "effect polled");
  const answered = polled.trouble ?? (polled.failed ? "unknown" : "well");
  return reportWith(act, { service: call.service, answer: answered }, () => storePolled(act, next, polled));
}

function storePolled(act: Act, next: Poll, { answer, trouble }: Polled): Promise<Stored> {
  const { call } = next;
  if (answer.answer === "failed") return commitResult(act, call, { result: "failed", output: failureOutput(answer) });
  // Whatever else a tool may say in place of it: nothing is done that is not said to be.
  if (answer.answer !== "settled") return holdUntilPoll(act, next, trouble?.retryAfterMs ?? 0);
  const kept = storeOutput(answer.output);
  const { output, artifacts, whole, withoutArtifacts } = kept;
  const result = "succeeded";
  return commitResult(act, call, { result, output, artifacts, whole }).catch((error) => {
    // How it settled never goes lost for what belongs to it.
    if (artifacts.length === 0 || failureKind(error) !== "data") throw error;
    return commitResult(act, call, { result, output: withoutArtifacts, whole: withoutWhole(kept) });
  });
}

function commitResult(
  { run }: Act,
  call: Call,
  {
    result,
    output,
    artifacts = [],
    whole = {},
  }: {
    readonly result: "succeeded" | "failed";
    readonly output: JsonValue;
    readonly artifacts?: readonly Artifact[];
    readonly whole?: Whole;
  },
): Promise<Stored> {
  return run.commit({
    steps: [{ kind: "tool_result", callId: call.id, result, output, ...whole }],
    artifacts,
    currentStep: call.tool,
    progress: true,
  });
}

/** @param leastMs what the other side asks to wait. */
function holdUntilPoll({ run }: Act, { call, sinceMs, beside }: Poll, leastMs = 0): Promise<Stored> {
  const everyMs = call.effect.kind === "effect" ? (call.effect.settlement?.everyMs ?? 0) : 0;
  const own: Hold = {
    kind: "dependency",
    waitingFor: { kind: "callback", principal: call.service, subject: call.id, reason: "settlement_pending" },
    deadline: { inMs: Math.max(leastMs, pollDelayMs(Math.max(0, run.nowMs - sinceMs), everyMs)) },
    onDeadline: "continue",
  };
  const hold = beside === undefined ? own : bothHolds(own, beside, run.nowMs);
  return run.move([{ type: "Held", hold }], { currentStep: call.tool }, hold.waitingFor.reason);
}

function acceptedHere({ view, stepSeqAtClaim }: OwnedRun, call: Call): boolean {
  return recordOf(view.history, call.id).acceptedSeq > stepSeqAtClaim;
}

/** Whether the other side has reported something by itself that nobody has asked about yet. */
function isReported({ view }: OwnedRun, call: Call): boolean {
  return view.unread.some(({ body }) => body.kind === "callback" && body.callId === call.id);
}
