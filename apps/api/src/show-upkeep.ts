import type {
  MaintenanceAction,
  AuditFinding as ShownFinding,
  Maintenance as ShownMaintenance,
  Tombstone as ShownTombstone,
} from "@holdpoint/protocol";
import { type IdKind, showId, type Tombstone } from "@holdpoint/store";
import type { Action, AuditFinding, Maintenance, Subject } from "@holdpoint/upkeep";
import { failureOf } from "./failure.ts";
import { shown } from "./show.ts";

/** What is known by an id of ours; everything else has a name. */
const IDS: Readonly<Partial<Record<Subject["kind"], IdKind>>> = {
  approval: "approval",
  session: "session",
  tombstone: "run",
};

export function showMaintenance({ actions, unreadable, applied }: Maintenance): ShownMaintenance {
  return {
    actions: actions.map(showAction),
    unreadable: [...unreadable],
    applied:
      applied === null
        ? null
        : {
            followUps: applied.followUps.map(showAction),
            followed: applied.followed,
            left: applied.left.map(showAction),
            failed: applied.failed.map(({ kind, count, error }) => ({ kind, count, error: failureOf(error).error })),
          },
  };
}

function showAction({ kind, runId, subject }: Action): MaintenanceAction {
  return {
    kind,
    runId: runId === null ? null : showId("run", runId),
    subject: subject === null ? null : showSubject(subject),
  };
}

function showSubject({ kind, id }: Subject): NonNullable<MaintenanceAction["subject"]> {
  const idKind = IDS[kind];
  return { kind, id: idKind === undefined ? id : showId(idKind, id) };
}

/** What the subject of a code is, where it is an id. */
const SUBJECTS: Readonly<Partial<Record<AuditFinding["code"], IdKind>>> = {
  delivery_failing: "delivery",
  hold_without_assignee: "approval",
  terminal_with_live_children: "run",
};

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function showAuditFinding({ runId, subject, sinceMs, ageMs, ...finding }: AuditFinding): ShownFinding {
  const run = runId === null ? null : showId("run", runId);
  const about = subject === null ? null : showAbout(finding.code, subject);
  return {
    ...finding,
    runId: run,
    subject: about,
    mend: finding.mend.replace("<run>", run ?? "").replace("<subject>", about ?? ""),
    since: shown(sinceMs),
    ageMs: ageMs === null ? null : Math.round(ageMs),
  };
}

function showAbout(code: AuditFinding["code"], subject: string): string {
  if (!UUID.test(subject)) return subject;
  const kind = SUBJECTS[code];
  if (kind !== undefined) return showId(kind, subject);
  // An effect that nobody knows the end of: its open attempt; or its call, where the other side had accepted it.
  return code === "effect_unresolved" ? showId("attempt", subject) : subject;
}

export function showTombstone({
  runId,
  line,
  parent,
  endedAtMs,
  removedAtMs,
  effects,
  ...rest
}: Tombstone): ShownTombstone {
  return {
    ...rest,
    runId: showId("run", runId),
    line: showId("run", line),
    parent: parent === null ? null : showId("run", parent),
    endedAt: shown(endedAtMs),
    removedAt: shown(removedAtMs),
    effects: effects.map(({ service: _, at, failedAt, ...effect }) => ({
      ...effect,
      at: shown(Date.parse(at)),
      failedAt: failedAt === null ? null : shown(Date.parse(failedAt)),
    })),
  };
}
