import { setTimeout as sleep } from "node:timers/promises";
import { type Next, nextInWords, plan } from "@holdpoint/core";
import type { LoadedRun, Run } from "@holdpoint/store";
import { actOnCall } from "./act-on-call.ts";
import { actOnChildren, actOnStop } from "./act-on-children.ts";
import { actOnGraph } from "./act-on-graph.ts";
import { actOnMigration } from "./act-on-migration.ts";
import { actOnModel } from "./act-on-model.ts";
import { actOnOpenAttempt } from "./act-on-open-attempt.ts";
import { actOnSettlement } from "./act-on-settlement.ts";
import type { WorkflowAgent } from "./bind-workflow.ts";
import { passThen, waitForService } from "./call-service.ts";
import { modelAgent } from "./define-agent.ts";
import { endRun } from "./end-run.ts";
import { toOperator } from "./give-away.ts";
import { holdRun } from "./hold-run.ts";
import { keepTrying } from "./keep-trying.ts";
import { nameOf } from "./log.ts";
import { OwnedRun, type Stored } from "./owned-run.ts";
import { asksPerson } from "./person-result.ts";
import type { Act, RunContext } from "./run-context.ts";
import { setTimer } from "./set-timer.ts";
import { WholeOutputs } from "./whole-outputs.ts";
import { writeRelease, writeResult } from "./write-result.ts";

/** How the work on a claimed run ended: given back (with the row as it is now), or not this worker's any more. */
export type Worked = { readonly result: "given"; readonly run: Run } | { readonly result: "replaced" };

/**
 * Works on a claimed run until it holds, ends, or has to be given back: plan, act, commit, again. Resuming is the same
 * loop on the same rows.
 */
export async function workRun(context: RunContext, loaded: LoadedRun): Promise<Worked> {
  const run = new OwnedRun({ ...context, progressMs: progressMs(context) }, loaded);
  const watch = context.lease.watch(loaded.run.id, context.drained);
  const outputs = new WholeOutputs(context.store);
  const act: Act = { context, run, outputs, stop: watch.stop };
  try {
    sayTakenUp(act);
    for (;;) {
      if (!context.lease.isValid()) return { result: "replaced" };
      const stored = await step(act);
      if (stored.result === "given" || stored.result === "replaced") return stored;
    }
  } catch (error) {
    return giveToOperator(act, error);
  } finally {
    watch.end();
  }
}

/** The time within which a run of this agent shows progress, in milliseconds. */
export function progressMs({ agent }: Pick<RunContext, "agent">): number {
  return agent.idleMs;
}

/** What has nothing to wait for is no async function, here and in what this calls: at every step each would cost a promise. */
function step(act: Act): Promise<Stored> {
  const { context, run } = act;
  const { state } = run.view.run;
  const settles = state.openAttempts > 0;
  const stopped = state.cancelRequestedAt !== null || state.pauseRequestedAt !== null;
  // An open attempt is looked up even while the run is being stopped: until it is settled, the run has not stopped.
  if ((stopped && !settles) || context.draining.aborted) return giveBack(act, settles);
  if (act.stop.aborted && !stopped) return afterStop(act);
  if (run.isPolicyStale) return run.reload();
  const next = plan(run.planInput());
  switch (next.do) {
    case "settle_attempt":
      return actOnOpenAttempt(act, next);
    case "read_facts":
      return readFacts(act, next);
    case "call_model":
      return afterWait(act, next.afterMs, () => tryModel(act, next));
    case "execute":
      if (asksPerson(context.agent, next.call)) return writeRelease(act, next);
      return afterWait(act, next.afterMs, () => tryCall(act, next));
    case "poll":
      return actOnSettlement(act, next);
    case "write_result":
      return writeResult(act, next);
    case "hold":
      return holdRun(act, next);
    case "decide":
      return actOnGraph(act, graphOf(act), next);
    case "migrate":
      return actOnMigration(act, graphOf(act), next);
    case "set_timer":
      return setTimer(act, next);
    case "start_children":
      return actOnChildren(act, next);
    case "stop_children":
      return actOnStop(act, next.children);
    case "end":
      return endRun(act, next);
  }
}

/**
 * A delay that has begun here goes on: a restart of workers must not shorten what the other side asked for. A run that
 * only has to wait is held at once.
 */
function giveBack(act: Act, settles = false): Promise<Stored> {
  const { run } = act;
  const next = settles ? null : plan(run.planInput());
  if (next?.do === "hold") return holdRun(act, next);
  const afterMs = next !== null && "afterMs" in next && failedHere(run) ? next.afterMs : 0;
  return run.move([{ type: "Released", retryAt: afterMs === 0 ? null : { inMs: afterMs } }]);
}

function failedHere({ view, stepSeqAtClaim }: Act["run"]): boolean {
  return view.run.stepSeq > stepSeqAtClaim;
}

/** The stop list named this run: its row says what was asked. If nothing is, the request was taken back meanwhile. */
async function afterStop(act: Act): Promise<Stored> {
  const stored = await act.run.reload();
  const { state } = act.run.view.run;
  const asked = state.cancelRequestedAt !== null || state.pauseRequestedAt !== null;
  return stored.result === "changed" && !asked ? giveBack(act) : stored;
}

/** Waits below this stay in the process; longer ones give the run back until they are over. */
const SHORT_WAIT_MS = 2_000;

/** A delay counts from the failure that is the last step; whoever claims the run after it has waited long enough. */
function afterWait(act: Act, afterMs: number, work: () => Promise<Stored>): Promise<Stored> {
  const { run } = act;
  if (afterMs === 0 || !failedHere(run)) return work();
  if (afterMs >= SHORT_WAIT_MS) return run.move([{ type: "Released", retryAt: { inMs: afterMs } }]);
  return waitHere(act, afterMs, work);
}

async function waitHere({ context, run, stop }: Act, afterMs: number, work: () => Promise<Stored>): Promise<Stored> {
  try {
    await sleep(afterMs, undefined, { signal: stop });
  } catch {
    // The only thing that ends this sleep early is a stop; the row says what was asked.
    return run.reload();
  }
  return context.lease.isValid() ? work() : { result: "replaced" };
}

function graphOf({ context: { agent } }: Act): WorkflowAgent {
  if (agent.kind !== "workflow") throw new RangeError(`Agent ${agent.name} has no graph to ask`);
  return agent;
}

function tryModel(act: Act, next: Extract<Next, { do: "call_model" }>): Promise<Stored> {
  const { service } = next;
  const { modelTimeoutMs: probeMs } = modelAgent(act.context.agent);
  return passThen(act, { service, probeMs, wait: waitForService(act, null) }, () => actOnModel(act, next));
}

function tryCall(act: Act, next: Extract<Next, { do: "execute" }>): Promise<Stored> {
  const { service, call } = next;
  return passThen(act, { service, probeMs: call.timeoutMs, wait: waitForService(act, call) }, () =>
    actOnCall(act, next),
  );
}

function readFacts({ run }: Act, { facts }: Extract<Next, { do: "read_facts" }>): Promise<Stored> {
  return run.commit({
    steps: facts.map(({ body }) => body),
    readFacts: facts.map(({ id }) => id),
    currentStep: "take in what arrived",
    progress: false,
  });
}

function sayTakenUp({ context, run }: Act): void {
  const { id, checkpoint, epoch, state } = run.view.run;
  context.log.info(
    {
      event: "run.taken_up",
      runId: id,
      epoch,
      takeovers: state.takeovers,
      lastCompleted: checkpoint.lastCompleted,
      next: nextInWords(plan(run.planInput())),
    },
    "run taken up",
  );
}

/** The loop itself failed: a person is told, rather than the next worker failing in the same way. */
async function giveToOperator({ context, run }: Act, error: unknown): Promise<Worked> {
  const { log } = context;
  const { id: runId } = run.view.run;
  const name = nameOf(error);
  log.error({ event: "run.loop_failed", runId, error: name }, "run loop failed");
  const give = async (): Promise<Worked | null> => {
    const stored = await run.move([toOperator(run.view.run)], {}, name);
    return stored.result === "given" || stored.result === "replaced" ? stored : null;
  };
  const given = await keepTrying(context, give, (cause) =>
    log.warn({ event: "run.not_given_away", runId, error: nameOf(cause) }, "run not given away"),
  );
  // The lease is over, or the process ends: the sweeper takes the run from an owner that is gone.
  return given ?? { result: "replaced" };
}
