import { approvalFor, DEFAULT_DEADLINES, judgeLookUp, type Next, takeOver } from "@holdpoint/core";
import { beginEffect, giveAsUnknown, openCall } from "./act-on-call.ts";
import { lookUp } from "./execute-call.ts";
import { storeOutput } from "./output.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

type SettleAttempt = Extract<Next, { do: "settle_attempt" }>;

/** Settles an attempt that another claim left open, by what its tool offers; never by doing it again blindly. */
export async function actOnOpenAttempt(act: Act, { call, attempt }: SettleAttempt): Promise<Stored> {
  const { context, run } = act;
  const { status } = run.view.run.state;
  // Only a run that was claimed for a look-up may settle; any other gives itself back for one.
  if (status === "running") return giveAsUnknown(act, call);
  const way = takeOver(openCall(act, call, attempt));
  context.log.info(
    { event: "attempt.taken_over", runId: run.view.run.id, tool: call.tool, attempt: attempt.number, by: way.do },
    "attempt taken over",
  );
  if (way.do === "look_up") return settleByLookUp(act, { call, attempt });
  return way.do === "repeat" ? repeat(act, { call, attempt }) : giveToPerson(act, way.reason);
}

function giveToPerson({ run }: Act, reason: string): Promise<Stored> {
  return run.move([{ type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null }], {}, reason);
}

type Open = Pick<SettleAttempt, "call" | "attempt">;

async function settleByLookUp(act: Act, { call, attempt }: Open): Promise<Stored> {
  const { context, run } = act;
  const tool = toolOf(act, call.tool);
  const { id: runId, requester } = run.view.run;
  // Not the run's stop: a run that is being stopped is looked up all the same.
  const stop = AbortSignal.any([context.lease.signal, context.drained]);
  const asked = { tool, call, attempt: attempt.number, runId, requester, stop, remainingMs: call.timeoutMs };
  const { found, externalRef } = await lookUp(asked);
  if (!context.lease.isValid()) return { result: "replaced" };
  const lookUps = run.view.openAttempts.find(({ id }) => id === attempt.id)?.lookUps ?? 0;
  const judged = judgeLookUp(found.answer, { ...openCall(act, call, attempt), lookUps });
  context.log.info(
    {
      event: "attempt.looked_up",
      runId,
      tool: call.tool,
      attempt: attempt.number,
      answer: found.answer,
      judged: judged.do,
    },
    "attempt looked up",
  );
  if (judged.do === "repeat") return repeat(act, { call, attempt });
  if (judged.do === "look_again") {
    const lookUpsEnd = { inMs: DEFAULT_DEADLINES.lookUpsMs };
    return run.move([{ type: "EffectUnknown", nextLookUp: { inMs: judged.inMs }, lookUpsEnd }], {
      lookUps: [{ attemptId: attempt.id }],
    });
  }
  const settledBy = `look_up:${context.workerId}`;
  const event = { type: "EffectSettled", by: "owner", wasOpen: true } as const;
  if (found.answer !== "happened") {
    return run.move([event], {
      steps: [{ kind: "did_not_happen", callId: call.id, attempt: attempt.number }],
      settles: [{ attemptId: attempt.id, outcome: "did_not_happen", settledBy }],
    });
  }
  const { output, artifacts } = storeOutput(found.output);
  return run.move(
    [event],
    {
      steps: [{ kind: "tool_result", callId: call.id, result: "succeeded", output }],
      settles: [{ attemptId: attempt.id, outcome: "happened", settledBy, externalRef }],
      artifacts,
      currentStep: call.tool,
    },
    "found by look-up",
  );
}

/** The same operation id again: the other side answers from its record, or acts for the first time. */
function repeat(act: Act, { call, attempt }: Open): Promise<Stored> {
  return beginEffect(act, {
    call,
    attempt: attempt.number + 1,
    tool: toolOf(act, call.tool),
    supersedes: attempt.id,
    approvalId: approvalFor(call, { approvals: act.run.view.approvals, nowMs: act.run.nowMs })?.id ?? null,
  });
}

function toolOf({ context }: Act, name: string) {
  const tool = context.agent.tools.get(name);
  if (tool === undefined) throw new RangeError(`Agent ${context.agent.name} has no tool ${name} any more`);
  return tool;
}
