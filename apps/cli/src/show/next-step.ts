import type { Run } from "@holdpoint/protocol";

/** What comes next for a run, and from whom, in words. */
export function nextStep(run: Run): string {
  const step = run.currentStep ?? "its next step";
  switch (run.status) {
    case "queued":
      return run.kind === "workflow"
        ? "a free worker takes it up, and asks its graph what is ready"
        : "a free worker takes it up";
    case "running":
      return run.owner?.silent === true
        ? "another worker takes it up, if its own does not come back"
        : `${step}, by its worker`;
    case "waiting_input":
      return "the answer goes to the model";
    case "waiting_approval":
      return `${step} runs if it is approved; otherwise the model is told`;
    case "waiting_dependency":
      return dependency(run);
    case "waiting_operator":
      return `an operator decides (${choices(run)})`;
    case "retrying":
      return `${step} again, at ${run.retryAt ?? "once"}`;
    case "outcome_unknown":
      return `${step} is looked up${run.nextReconcileAt === null ? "" : ` at ${run.nextReconcileAt}`}, and only then it goes on`;
    case "paused":
      return "an operator resumes it";
    case "lost":
      return "it is recovered, and another worker takes it up";
    case "cancelling":
      return "it stops as soon as nothing is open any more";
    case "failed":
      return run.actions.resume === null
        ? "nothing by itself; `runs resume` makes a run that goes on with what was completed"
        : "nothing; it has ended";
    case "completed":
    case "cancelled":
      return "nothing; it has ended";
  }
}

function dependency({ waitingFor, waitDeadline }: Run): string {
  const whom = waitingFor?.principal ?? "what it waits for";
  const at = waitDeadline ?? "its deadline";
  if (waitingFor?.kind === "service") return `${whom} is tried again at ${at}`;
  if (waitingFor?.kind === "callback") return `${whom} reports, or is asked at ${at}`;
  if (waitingFor?.kind === "child") return `it goes on at the end of ${whom}`;
  return `it goes on when ${whom} is there`;
}

/** What the hold itself offers; to terminate is possible for every run, and no answer to it. */
const CHOICES = ["retry", "skip", "abort", "mark_done", "not_established"] as const;

function choices({ actions }: Run): string {
  const open = CHOICES.filter((choice) => actions[choice] === null);
  return open.length === 0 ? "not you" : open.join(", ");
}
