import { describeLoss } from "@holdpoint/core";
import type { LossForecast, RestartPlan } from "@holdpoint/protocol";
import { type LossForecast as Forecast, showId } from "@holdpoint/store";
import type { WorkerView } from "@holdpoint/store/read";
import { shown } from "./show.ts";

const TASK_TAKEN =
  "somebody else may start it anew, while whoever has it may still act, until told so at its next heartbeat: it may be done twice";

/** What becomes of a run that loses its worker, as it crosses HTTP. */
export function showForecast({ run, foreseen, open }: Forecast): LossForecast {
  return {
    runId: showId("run", run.id),
    status: run.state.status,
    agent: run.agent,
    currentStep: run.currentStep,
    becomes: foreseen.becomes.status,
    // Nothing keeps whoever works elsewhere from acting: not its claim, only its own next heartbeat.
    text: run.isTask && foreseen.becomes.status === "queued" ? TASK_TAKEN : describeLoss(foreseen, run.currentStep),
    effects: open.map(({ attemptId, callId: _, startedAtMs, deadlineAtMs, ...effect }) => ({
      ...effect,
      attemptId: showId("attempt", attemptId),
      startedAt: shown(startedAtMs),
      deadlineAt: shown(deadlineAtMs),
    })),
  };
}

/** What is in flight on one worker, and what a restart does to it. */
export function showRestart(worker: WorkerView, forecasts: readonly Forecast[]): RestartPlan["workers"][number] {
  return {
    workerId: showId("worker", worker.id),
    host: worker.host,
    pid: worker.pid,
    silent: worker.silent,
    drainRequestedAt: shown(worker.drainRequestedAtMs),
    runs: forecasts.map(showForecast),
    drained: drainedText(forecasts),
    killed: killedText(worker, forecasts),
  };
}

/** A drained worker waits for what it has sent: nothing becomes unknown by it. */
function drainedText(forecasts: readonly Forecast[]): string {
  if (forecasts.length === 0) return "it has nothing in flight and ends at once";
  const runs =
    forecasts.length === 1 ? "its run finishes its present step and is" : "its runs finish their present steps and are";
  const deadlines = forecasts.flatMap(({ open }) => open.map(({ deadlineAtMs }) => deadlineAtMs));
  const latest =
    deadlines.length === 0 ? "" : `; calls under way are waited for, the last until ${shown(Math.max(...deadlines))}`;
  return `it takes up nothing more, ${runs} given back, which is no attempt${latest}`;
}

function killedText({ leaseUntilMs }: WorkerView, forecasts: readonly Forecast[]): string {
  const found = `its supervisor sees the end at once; without one, the sweeper finds it after ${shown(leaseUntilMs)} and its grace`;
  const counts = Object.entries(Object.groupBy(forecasts, ({ foreseen }) => foreseen.becomes.status));
  const becomes = counts.map(([status, runs]) => `${runs.length} ${status.replaceAll("_", " ")}`).join(", ");
  return forecasts.length === 0 ? found : `${found}; of its runs become: ${becomes}`;
}
