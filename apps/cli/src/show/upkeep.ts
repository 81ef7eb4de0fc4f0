import type { AuditFinding, Maintenance, MaintenanceAction, Retention, Tombstone } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { renderTable } from "../table.ts";
import { duration, localAndRelative, relative } from "../times.ts";

/** What each sweep does, in words. A sweep that is not here is called by its name. */
const DOES: Readonly<Record<string, string>> = {
  "recover-forsaken": "give to another worker: its own is gone",
  "recover-wedged": "give to another worker: its own shows no progress",
  "pass-deadlines": "pass its deadline",
  "retry-due": "try again: the time has come",
  "repair-cascade": "ask to stop: its parent was asked",
  "tell-parents": "count the children that have ended",
  "resolve-vanished": "ask an operator: the child that it waits for is not there",
  "settle-cancelling": "end: it was asked to stop, and has stopped",
  "stop-replaced": "ask to stop: a later slot of its schedule replaces it",
  "remind-approvers": "remind its approvers",
  "repeat-wake-ups": "wake a worker again: the queue has lost its wake-up",
  "start-queued-slots": "start the slot that waits",
  "fire-schedules": "fire its schedule",
  "remove-expired": "remove: it is past its retention",
  "remove-leftovers": "remove: nothing refers to it any more",
};

const ACTIONS = [
  { title: "WHAT", max: 60 },
  { title: "RUN", max: 30 },
  { title: "ABOUT", max: null },
] as const;

/** What maintenance has found; the same list whether it was done or only shown. */
export function showMaintenance({ actions, unreadable, applied }: Maintenance, view: View): string {
  const parts = [actions.length === 0 ? "nothing to do\n" : tableOf(actions, view)];
  for (const what of unreadable) parts.push(`not read: ${what}; nobody knows whether something is to be done there\n`);
  if (applied === null && actions.length > 0) {
    parts.push(view.out.colours.quiet("Nothing was done. holdpoint maintenance --apply does it.\n"));
  }
  if (applied !== null) parts.push(...doneParts(applied, view));
  return parts.join("\n");
}

function doneParts(
  { followUps, followed, left, failed }: NonNullable<Maintenance["applied"]>,
  view: View,
): readonly string[] {
  const { bad } = view.out.colours;
  return [
    ...(followUps.length === 0
      ? []
      : [`Found after that, and done as well (${followed}):\n${tableOf(followUps, view)}`]),
    ...failed.map(({ kind, count, error }) => bad(`${kind} failed for ${count} (${error}); the api's log says more\n`)),
    ...(left.length === 0 ? [] : [`Still to be done; apply again:\n${tableOf(left, view)}`]),
  ];
}

function tableOf(actions: readonly MaintenanceAction[], { out }: View): string {
  const rows = actions.map(({ kind, runId, subject }) => [
    DOES[kind] ?? kind,
    runId ?? "",
    subject === null ? "" : `${subject.kind} ${subject.id}`,
  ]);
  return renderTable(ACTIONS, rows, out);
}

const FINDINGS = [
  { title: "CODE", max: 28 },
  { title: "FOR", max: 10 },
  { title: "RUN", max: 30 },
  { title: "WHAT", max: 50, wraps: true },
  { title: "MEND", max: null, wraps: true },
] as const;

/** What an audit has found, as a table. */
export function showAudit(findings: readonly AuditFinding[], { out }: View): string {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const head = `${findings.length} findings, ${errors} errors, ${findings.length - errors} warnings\n`;
  if (findings.length === 0) return head;
  const rows = findings.map(({ code, severity, ageMs, runId, subject, says, mend }) => [
    { text: code, paint: severity === "error" ? out.colours.bad : out.colours.waiting },
    ageMs === null ? "" : duration(ageMs),
    runId ?? "",
    subject === null ? says : `${says} (${subject})`,
    mend,
  ]);
  return `${head}\n${renderTable(FINDINGS, rows, out)}`;
}

/** What is left of runs that were removed. */
export function showTombstones(tombstones: readonly Tombstone[], view: View): string {
  if (tombstones.length === 0) return "no removed run is known by that\n";
  return tombstones.map((tombstone) => showTombstone(tombstone, view)).join("\n");
}

const EFFECTS = [
  { title: "EFFECT", max: 24 },
  { title: "OUTCOME", max: 16 },
  { title: "OPERATION", max: 40 },
  { title: "OUTSIDE", max: null },
] as const;

function showTombstone(
  { runId, agent, requester, status, outcome, endedAt, removedAt, effects }: Tombstone,
  view: View,
) {
  const what = outcome === null ? status : `${status} (${outcome})`;
  const lines = [
    `${runId}: ${agent.name}@${agent.version} for ${requester}, ${what}`,
    `ended ${localAndRelative(endedAt, view.now)}, removed ${relative(removedAt, view.now)}`,
  ];
  const rows = effects.map(({ tool, outcome: how, operationId, externalRef, failedAt }) => [
    tool,
    failedAt === null ? (how ?? "").replaceAll("_", " ") : `${how}, failed since`,
    operationId,
    externalRef ?? "",
  ]);
  return `${lines.join("\n")}\n${rows.length === 0 ? "no effects\n" : renderTable(EFFECTS, rows, view.out)}`;
}

/** How long runs are kept. */
export function showRetention(retention: Retention): string {
  const { succeededDays, partialDays, blockedDays, failedDays, cancelledDays, tombstoneDays } = retention;
  return [
    "Runs are kept after their end, in days:",
    `  succeeded ${succeededDays}, partial ${partialDays}, blocked ${blockedDays}, failed ${failedDays}, cancelled ${cancelledDays}`,
    "  (cancelled after a loss: at least as long as failed)",
    `Their tombstones and idempotency keys ${tombstoneDays} days longer.`,
    "",
  ].join("\n");
}
