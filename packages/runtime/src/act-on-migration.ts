import { MIGRATION_SUBJECT, type Next, operatorHold } from "@holdpoint/core";
import { checkMigration } from "@holdpoint/workflow";
import type { WorkflowAgent } from "./bind-workflow.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

const REASON_LIMIT = 1_000;

/**
 * Lets a run go on in another version of its workflow, if what it has done means the same there; else it is held, and an
 * operator says whether it is tried again or goes on in its own. Only a process that has both versions can tell.
 */
export async function actOnMigration(
  act: Act,
  agent: WorkflowAgent,
  { version }: Extract<Next, { do: "migrate" }>,
): Promise<Stored> {
  const { run, context } = act;
  const { id: runId } = run.view.run;
  const problems = await problemsOf(act, { from: agent, version });
  if (problems.length === 0) {
    context.log.info({ event: "run.migrated", runId, from: agent.version, to: version }, "run migrated");
    const released = { type: "Released", retryAt: null } as const;
    return run.move([released], { agentVersion: version }, `migrated from ${agent.version} to ${version}`);
  }
  context.log.warn(
    { event: "run.migration_refused", runId, to: version, problems: problems.length },
    "run not migrated",
  );
  const why = `migration to ${version}: ${problems.join("; ")}`.slice(0, REASON_LIMIT);
  return run.move([{ type: "Held", hold: operatorHold("migration_refused", MIGRATION_SUBJECT) }], {}, why);
}

async function problemsOf(
  { run, context, outputs }: Act,
  { from, version }: { readonly from: WorkflowAgent; readonly version: string },
): Promise<readonly string[]> {
  const target = context.findRunnable({ name: from.name, version });
  if (target?.kind !== "workflow") return [`the worker of version ${from.version} does not have ${version}`];
  const wholes = await run.untilStored(() => outputs.of(run.view));
  const checked = checkMigration(from.workflow, target.workflow, run.workflowHistory(from.workflow, wholes));
  return checked.ok ? [] : checked.problems;
}
