import { approvalFor, DEFAULT_DEADLINES, type Instant, judgeLookUp, type Next, takeOver } from "@holdpoint/core";
import { failureKind } from "@holdpoint/store";
import { beginEffect, isFor } from "./act-on-call.ts";
import { passThen, reportWith } from "./call-service.ts";
import type { Storable } from "./codec.ts";
import { type Concluded, concludeDone } from "./conclude.ts";
import type { LookUp } from "./define-tool.ts";
import { lookUp } from "./execute-call.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";
import { giveAsUnknown, openCall } from "./settle-effect.ts";

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
  if (way.do === "ask_a_person") return giveToPerson(act, way.reason);
  const service = run.troubledService(call.service);
  if (service !== null && service.untilMs > run.nowMs) return lookAgain(act, { at: service.untilMs });
  const passing = { service, probeMs: call.timeoutMs, wait: (inMs: number) => lookAgain(act, { inMs }) };
  return passThen(act, passing, () =>
    way.do === "look_up" ? settleByLookUp(act, { call, attempt }) : repeat(act, { call, attempt }),
  );
}

function giveToPerson({ run }: Act, reason: string): Promise<Stored> {
  return run.move([{ type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null }], {}, reason);
}

function lookAgain({ run }: Act, nextLookUp: Instant, attemptId?: string): Promise<Stored> {
  const lookUpsEnd = { inMs: DEFAULT_DEADLINES.lookUpsMs };
  const writes = attemptId === undefined ? {} : { lookUps: [{ attemptId }] };
  return run.move([{ type: "EffectUnknown", nextLookUp, lookUpsEnd }], writes);
}

type Open = Pick<SettleAttempt, "call" | "attempt">;

async function settleByLookUp(act: Act, { call, attempt }: Open): Promise<Stored> {
  const { context, run } = act;
  const tool = toolOf(act, call.tool);
  const { id: runId, requester } = run.view.run;
  // Not the run's stop: a run that is being stopped is looked up all the same.
  const stop = AbortSignal.any([context.lease.signal, context.drained]);
  const asked = { tool, call, attempt: attempt.number, runId, requester, stop, remainingMs: call.timeoutMs };
  const { found, externalRef, trouble } = await lookUp(asked);
  if (!context.lease.isValid()) return { result: "replaced" };
  const lookUps = run.view.openAttempts.find(({ id }) => id === attempt.id)?.lookUps ?? 0;
  const judged = judgeLookUp(found.answer, { ...openCall(act, call, attempt), lookUps });
  const line = { runId, tool: call.tool, attempt: attempt.number, answer: found.answer, judged: judged.do };
  context.log.info({ event: "attempt.looked_up", ...line }, "attempt looked up");
  const answered = found.answer === "unknown" ? "unknown" : "well";
  return reportWith(act, { service: call.service, answer: trouble ?? answered }, () =>
    judged.do === "repeat"
      ? repeat(act, { call, attempt })
      : storeFound(act, { call, attempt }, { found, externalRef, judged, trouble }),
  );
}

type LookedUp = Awaited<ReturnType<typeof lookUp>> & {
  readonly judged: Exclude<ReturnType<typeof judgeLookUp>, { do: "repeat" }>;
};

async function storeFound(
  act: Act,
  { call, attempt }: Open,
  { found, externalRef, judged, trouble }: LookedUp,
): Promise<Stored> {
  const { context, run } = act;
  if (judged.do === "look_again") {
    return lookAgain(act, { inMs: Math.max(judged.inMs, trouble?.retryAfterMs ?? 0) }, attempt.id);
  }
  const settledBy = `look_up:${context.workerId}`;
  if (found.answer !== "happened") {
    return run.move([SETTLED], {
      steps: [{ kind: "did_not_happen", callId: call.id, attempt: attempt.number, ...failureOf(act, attempt.id) }],
      settles: [{ attemptId: attempt.id, outcome: "did_not_happen", settledBy }],
    });
  }
  return storeHappened(act, { call, attempt }, { found, externalRef, settledBy });
}

/** Why its worker did not know what became of it; nothing where it could not say, since losing a worker costs no try. */
function failureOf({ run }: Act, attemptId: string): { readonly code?: string } {
  const known = run.view.openAttempts.find(({ id }) => id === attemptId);
  const code = known === undefined || known.repeatRefused ? null : known.errorCode;
  return code === null ? {} : { code };
}

const SETTLED = { type: "EffectSettled", by: "owner", wasOpen: true } as const;

async function storeHappened(
  act: Act,
  { call, attempt }: Open,
  what: {
    readonly found: Extract<LookUp<Storable>, { answer: "happened" }>;
    readonly externalRef: string | null;
    readonly settledBy: string;
  },
): Promise<Stored> {
  const { found, externalRef, settledBy } = what;
  const settle = { outcome: "happened", externalRef } as const;
  const concluded = concludeDone(found.output, { call, tool: toolOf(act, call.tool), settle });
  const store = ({ body, artifacts }: Concluded["spare"]): Promise<Stored> => {
    const settles = [{ ...settle, attemptId: attempt.id, settledBy }];
    const writes = { steps: [body], settles, artifacts, currentStep: call.tool };
    return act.run.move([SETTLED], writes, "found by look-up");
  };
  try {
    return await store(concluded);
  } catch (error) {
    if (failureKind(error) !== "data") throw error;
    return store(concluded.spare);
  }
}

/** The same operation id again: the other side answers from its record, or acts for the first time. */
function repeat(act: Act, { call, attempt }: Open): Promise<Stored> {
  const tool = toolOf(act, call.tool);
  if (!isFor(tool, call)) return giveToPerson(act, "incompatible_tool");
  const approval = approvalFor(call, { ...act.run.view, nowMs: act.run.nowMs });
  // It has lapsed since the way was chosen: the next one is chosen without it.
  if (approval === undefined) return act.run.reload();
  const approvalId = approval?.id ?? null;
  return beginEffect(act, {
    call,
    attempt: attempt.number + 1,
    tool,
    supersedes: attempt.id,
    approvalId,
    probe: false,
  });
}

function toolOf({ context }: Act, name: string) {
  const tool = context.agent.tools.get(name);
  if (tool === undefined) throw new RangeError(`Agent ${context.agent.name} has no tool ${name} any more`);
  return tool;
}
