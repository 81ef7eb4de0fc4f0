import type { LossForecast, RestartPlan } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { wrap } from "../safe-text.ts";
import { localAndRelative, withLocalTimes } from "../times.ts";

/** What is in flight on workers, and what a restart does to each run. */
export function showRestartPlan({ workers }: RestartPlan, view: View): string {
  return workers.map((worker) => showWorker(worker, view)).join("\n");
}

function showWorker(worker: RestartPlan["workers"][number], view: View): string {
  const { out, now } = view;
  const heard = worker.silent ? `, ${out.colours.bad("not heard of")}` : "";
  const drain =
    worker.drainRequestedAt === null ? "" : `, draining since ${localAndRelative(worker.drainRequestedAt, now)}`;
  const head = `${out.colours.title(worker.workerId)}  process ${worker.pid} on ${worker.host}${heard}${drain}\n`;
  const said = (label: string, text: string) =>
    `  ${label}: ${wrap(withLocalTimes(text, now), { width: out.width, indent: 4 })}\n`;
  const count = worker.runs.length === 0 ? "  Nothing is in flight.\n" : "";
  return [
    head,
    said("If it is drained", worker.drained),
    said("If it is killed", worker.killed),
    count,
    ...worker.runs.map((run) => showLoss(run, view)),
  ].join("");
}

/** One run: what it does now, what is open, and what becomes of it without its worker. */
export function showLoss(run: LossForecast, { out, now }: View): string {
  const step = run.currentStep === null ? "" : `, ${run.currentStep}`;
  const effects = run.effects.map(
    ({ tool, number, effectClass, startedAt, deadlineAt, settledBy }) =>
      `    ${wrap(
        withLocalTimes(
          `${tool}, attempt ${number}, ${CLASSES[effectClass]}, sent ${startedAt}, its time is over ${deadlineAt}: ${settledBy}`,
          now,
        ),
        { width: out.width, indent: 6 },
      )}\n`,
  );
  const what = `without its worker: ${run.becomes.replaceAll("_", " ")}; ${run.text}`;
  return `  ${run.runId}  ${status(run, out)}${step}\n${effects.join("")}    ${wrap(what, { width: out.width, indent: 6 })}\n`;
}

function status({ status: now }: LossForecast, { colours }: Output): string {
  return now === "outcome_unknown" ? colours.bad(now) : now;
}

const CLASSES = {
  read: "read",
  timer: "timer",
  children: "child runs",
  key: "effect with a key",
  look_up: "effect with a look-up",
  both: "effect with key and look-up",
  unsafe: "unsafe effect",
} as const satisfies Record<LossForecast["effects"][number]["effectClass"], string>;
