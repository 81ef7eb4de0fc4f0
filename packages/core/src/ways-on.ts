import type { ExplainedApproval, ExplainedRun } from "./explain.ts";

/** Something that would move the run; by itself where there is no command for it. */
export interface WayOn {
  readonly text: string;
  readonly command: string | null;
}

/** What would move the run on, what is nearest first. */
export function waysOn(run: ExplainedRun): readonly WayOn[] {
  const { id, status } = run;
  const elsewhere = run.isTask === true ? taskWays(run) : null;
  if (elsewhere !== null) return elsewhere;
  switch (status) {
    case "queued":
      return [queueWay(run)];
    case "running":
      return [runningWay(run), ...takeOverWay(run)];
    case "waiting_input":
      return [{ text: "its requester answers", command: `holdpoint answer ${id} "<answer>"` }];
    case "waiting_approval":
      return run.approvals.flatMap(approvalWays);
    case "waiting_dependency":
      return dependencyWays(run);
    case "waiting_operator":
      return operatorWays(run);
    case "retrying":
      return [{ text: "its time comes, or an operator says now", command: decide(id, "retry_now") }];
    case "outcome_unknown":
      return [
        { text: `a worker looks the call up${run.nextLookUp === null ? "" : ` at ${run.nextLookUp}`}`, command: null },
        ...settleWays(run),
      ];
    case "paused":
      return [{ text: "an operator resumes it", command: `holdpoint runs resume ${id}` }];
    case "lost":
      return [{ text: "the sweeper recovers it, and another worker takes it up", command: null }];
    case "cancelling":
      return cancellingWays(run);
    case "completed":
    case "failed":
    case "cancelled":
      return [];
  }
}

/** What moves a task while nobody but its executor can; null where it moves as every run. */
function taskWays({ id, status, owner }: ExplainedRun): readonly WayOn[] | null {
  switch (status) {
    case "queued":
      return [{ text: "somebody starts it", command: `holdpoint tasks start ${id}` }];
    case "running":
      return [{ text: "whoever has it in hands says how it ended", command: `holdpoint tasks show ${id}` }];
    case "lost":
      return [
        { text: "whoever had it in hands is heard of again", command: `holdpoint tasks show ${id}` },
        { text: "its time as lost is over, and an operator is asked", command: null },
      ];
    case "cancelling":
      return owner === null
        ? null
        : [
            { text: "whoever has it in hands says that it has stopped", command: `holdpoint tasks show ${id}` },
            { text: "an operator ends it all the same", command: decide(id, "terminate") },
          ];
    default:
      return null;
  }
}

function queueWay({ servedBy, agent }: ExplainedRun): WayOn {
  return servedBy === 0
    ? { text: `a worker with ${agent} is started`, command: "holdpoint worker --agents <module>" }
    : { text: "a worker becomes free and takes it up", command: null };
}

function runningWay({ owner }: ExplainedRun): WayOn {
  if (owner?.silent !== true) return { text: "its worker stores its next step", command: null };
  const when = owner.goneAt === null ? "in the sweeper's next pass" : `after ${owner.goneAt}`;
  return { text: `its worker renews its lease, or another takes the run up ${when}`, command: null };
}

function takeOverWay({ id, owner }: ExplainedRun): readonly WayOn[] {
  if (owner === null) return [];
  return [
    {
      text: "an operator takes it from its worker; what is open is looked up, never made again blindly",
      command: `holdpoint workers takeover ${id} --dry-run`,
    },
  ];
}

function approvalWays({ id, deciders, roles }: ExplainedApproval): readonly WayOn[] {
  const decided = { text: `${id} is decided`, command: `holdpoint approvals show ${id}` };
  const [role] = roles;
  if (deciders > 0 || role === undefined) return [decided];
  return [
    { text: `somebody is given the role ${role}`, command: `holdpoint assignments grant <user> ${role}` },
    decided,
  ];
}

function dependencyWays({ waitingFor, waitDeadline, children, id }: ExplainedRun): readonly WayOn[] {
  const at = waitDeadline ?? "its deadline";
  switch (waitingFor?.kind) {
    case "child":
      return children.length === 0
        ? [{ text: "the sweeper finds that its children are gone, and asks an operator", command: null }]
        : children.map((child) => ({
            text: `its child ${child.id} ends`,
            command: `holdpoint runs explain ${child.id}`,
          }));
    case "service":
      return [{ text: `${waitingFor.principal} is tried again at ${at}`, command: "holdpoint services" }];
    case "callback":
      return [{ text: `${waitingFor.principal} reports, or is asked at ${at}`, command: null }];
    default:
      return [
        { text: `its time comes at ${at}`, command: null },
        { text: "an operator ends it", command: decide(id, "terminate") },
      ];
  }
}

function operatorWays(run: ExplainedRun): readonly WayOn[] {
  if (run.attempts.length > 0) {
    return [{ text: "an operator has it looked up again", command: decide(run.id, "retry") }, ...settleWays(run)];
  }
  const skip = { text: "an operator skips what it waits with", command: decide(run.id, "skip") };
  return [
    { text: "an operator lets it try again", command: decide(run.id, "retry") },
    ...(run.waitingFor?.subject == null ? [] : [skip]),
    { text: "an operator aborts it", command: decide(run.id, "abort") },
  ];
}

function settleWays({ id, attempts }: ExplainedRun): readonly WayOn[] {
  return attempts.flatMap((attempt) => [
    {
      text: `an operator has seen outside that ${attempt.tool} was done`,
      command: `${decide(id, "mark_done")} --attempt ${attempt.id} --result <json>`,
    },
    {
      text: `an operator says that nobody can find out about ${attempt.tool}`,
      command: `${decide(id, "not_established")} --attempt ${attempt.id}`,
    },
  ]);
}

function cancellingWays(run: ExplainedRun): readonly WayOn[] {
  const owner = run.owner === null ? [] : [{ text: `${run.owner.workerId} gives it back`, command: null }];
  const children = run.children.map((child) => ({
    text: `its child ${child.id} stops`,
    command: `holdpoint runs explain ${child.id}`,
  }));
  return [...owner, ...settleWays(run), ...children];
}

function decide(id: string, choice: string): string {
  return `holdpoint runs decide ${id} ${choice} --reason "<why>"`;
}
