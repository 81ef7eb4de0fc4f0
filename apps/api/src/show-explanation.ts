import { type ExplainedRun as Evidence, effectClass, explainReasons, goneAtMs, waysOn } from "@holdpoint/core";
import type { ExplainedRun, Explanation } from "@holdpoint/protocol";
import { showId } from "@holdpoint/store";
import { EXPLAINED_DEPTH, type RunEvidence, type TreeEvidence } from "@holdpoint/store/read";
import { instant, sentenceOf, showActor, shown, showSubject } from "./show.ts";

/** Why a run, and each of its live descendants, stands where it stands. */
export function showExplanation(tree: TreeEvidence): Explanation {
  return {
    at: shown(tree.nowMs),
    runs: tree.runs.map((each) => showExplained(each, tree)),
    cut: tree.cut,
    ancestors: tree.ancestors.map(({ id, status }) => ({ id: showId("run", id), status })),
  };
}

function showExplained(told: RunEvidence, tree: TreeEvidence): ExplainedRun {
  const { run, depth } = told;
  const evidence = evidenceOf(told, tree);
  const { owner, attempts, approvals, service, servedBy, queuedBefore, takeovers } = evidence;
  return {
    id: evidence.id,
    depth,
    parent: run.parent === null ? null : showId("run", run.parent),
    status: run.state.status,
    agent: run.agent,
    currentStep: run.currentStep,
    lastCompleted: run.checkpoint.lastCompleted,
    reasons: [...explainReasons(evidence)],
    waysOn: [...waysOn(evidence)],
    owner: owner === null ? null : { ...owner },
    attempts: told.attempts.flatMap(({ id, operationId, externalRef }) => {
      const shownId = showId("attempt", id);
      const known = attempts.find((attempt) => attempt.id === shownId);
      return known === undefined ? [] : [{ ...known, operationId, externalRef }];
    }),
    approvals: approvals.map((approval) => ({ ...approval, roles: [...approval.roles], users: [...approval.users] })),
    service,
    servedBy,
    queuedBefore,
    takeovers,
    verdict: showVerdict(told),
    recent: told.recent.map(({ actorKind, actorId, atMs, ...move }) => ({
      ...move,
      actor: showActor(actorKind, actorId),
      at: shown(atMs),
    })),
  };
}

/** What core explains is made of ids and instants as their reader sees them. */
function evidenceOf(told: RunEvidence, tree: TreeEvidence): Evidence {
  const { run, sinceMs, approvals, service, servedBy, queuedBefore, verdict } = told;
  const { state } = run;
  const owner = ownerOf(told, tree);
  const children = tree.runs.filter((each) => each.run.parent === run.id);
  // Deeper than is told, or where the list was cut, nobody can say that children are missing.
  const isWhole = !tree.cut && told.depth < EXPLAINED_DEPTH;
  return {
    id: showId("run", run.id),
    status: state.status,
    sentence: sentenceOf(run, { since: shown(sinceMs), owner }),
    agent: `${run.agent.name}@${run.agent.version}`,
    isTask: run.isTask,
    waitingFor:
      state.waitingFor === null ? null : { ...state.waitingFor, subject: showSubject(state.waitingFor.subject) },
    waitDeadline: instant(state.waitDeadline),
    nextLookUp: instant(state.nextReconcileAt),
    owner,
    attempts: told.attempts.map(({ id, tool, number, effect, startedAtMs, deadlineAtMs, lookUps }) => ({
      id: showId("attempt", id),
      tool,
      number,
      effectClass: effectClass(effect),
      startedAt: shown(startedAtMs),
      deadlineAt: shown(deadlineAtMs),
      overdue: deadlineAtMs < tree.nowMs,
      lookUps,
    })),
    approvals: approvals.map(({ id, deadlineMs, ...approval }) => ({
      ...approval,
      id: showId("approval", id),
      deadline: shown(deadlineMs),
    })),
    service:
      service === null
        ? null
        : {
            name: service.name,
            reason: service.reason,
            since: shown(service.sinceMs),
            closedUntil: shown(service.closedUntilMs),
          },
    servedBy,
    queuedBefore,
    stopRequestedAt: instant(state.cancelRequestedAt),
    pauseRequestedAt: instant(state.pauseRequestedAt),
    takeovers: state.takeovers,
    liveChildren: isWhole ? state.liveChildren : children.length,
    children: children.map((child) => ({ id: showId("run", child.run.id), status: child.run.state.status })),
    verdict: verdict === null ? null : { ...verdict, until: shown(verdict.untilMs), at: shown(verdict.atMs) },
  };
}

function ownerOf({ owner, run }: RunEvidence, { watch, nowMs }: TreeEvidence): Evidence["owner"] {
  if (owner === null) return null;
  const { id, host, pid, leaseUntilMs, leaseMs, goneReason, drainRequestedAtMs } = owner;
  return {
    workerId: showId("worker", id),
    host,
    pid,
    heardAt: shown(leaseUntilMs - leaseMs),
    leaseUntil: shown(leaseUntilMs),
    goneAt: goneReason !== null || watch === null ? null : shown(goneAtMs(owner, watch)),
    silent: leaseUntilMs < nowMs || goneReason !== null,
    progressDueAt: shown(run.progressDueAtMs),
    drainRequestedAt: shown(drainRequestedAtMs),
  };
}

function showVerdict({ verdict }: RunEvidence): ExplainedRun["verdict"] {
  if (verdict === null) return null;
  const { untilMs, atMs, evidence, ...judged } = verdict;
  return { ...judged, until: shown(untilMs), at: shown(atMs), evidence };
}
