import type { Publisher } from "@holdpoint/queue";
import { auditRuns, countQueued, failureKind, findViolations, type QueuedOfAgent, type Store } from "@holdpoint/store";
import { AUDIT_RULES, type FindingCode, type Severity } from "./audit-codes.ts";

/** Something about the fleet that is not as it should be. */
export interface AuditFinding {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly runId: string | null;
  /** What else it is about: a request, a child, an agent, a service, a rule. */
  readonly subject: string | null;
  readonly says: string;
  readonly mend: string;
  /** Since when, in milliseconds since the epoch on the database's clock; null: that is not known. */
  readonly sinceMs: number | null;
  readonly ageMs: number | null;
}

/** Most findings of each code. */
const LIMIT = 50;
/** Most agents whose queues are asked. */
const QUEUES_LIMIT = 50;
/** A queue that holds more wake-ups than its runs need by this many holds them for runs that are not there. */
const SURPLUS = 1_000;

/**
 * Looks for what is wrong, errors before warnings and what is oldest first. A healthy fleet has none of it, however busy; a
 * hold that waits within its deadline is none, were it days old.
 */
export async function auditFleet({
  store,
  publisher,
}: {
  readonly store: Store;
  readonly publisher: Publisher;
}): Promise<readonly AuditFinding[]> {
  const [rows, drift, violations] = await Promise.all([
    auditRuns(store, LIMIT),
    auditQueues(store, publisher),
    auditInvariants(store),
  ]);
  return [...rows.map((row) => findingOf(row)), ...drift, ...violations].toSorted(byWeight);
}

async function auditQueues(store: Store, publisher: Publisher): Promise<readonly AuditFinding[]> {
  const agents = await countQueued(store, QUEUES_LIMIT);
  const asked = await Promise.all(
    agents.map(async (queued) => ({ queued, waiting: await publisher.waiting(queued.agent) })),
  );
  return asked.flatMap(({ queued, waiting }) => {
    const code = driftOf(queued, waiting);
    if (code === null) return [];
    const { agent, sinceMs, ageMs } = queued;
    return [findingOf({ code, runId: null, subject: `${agent.name}@${agent.version}`, sinceMs, ageMs })];
  });
}

/** Where a sweep must have seen a run, its wake-up waits in the queue; a sweep fills a queue no further than this. */
const SWEPT_AT_MOST = 1_000;

function driftOf({ queued, overdue }: QueuedOfAgent, waiting: number | null): FindingCode | null {
  if (waiting === null) return "queue_unreadable";
  return waiting < Math.min(overdue, SWEPT_AT_MOST) || waiting > queued + SURPLUS ? "queue_drift" : null;
}

/** Most rules' violations that are told. */
const VIOLATIONS_LIMIT = 200;

/** The rules are read over everything, which a large history may not allow in time: that is told, not taken for health. */
async function auditInvariants(store: Store): Promise<readonly AuditFinding[]> {
  const unknown = { sinceMs: null, ageMs: null };
  try {
    const violations = await findViolations(store);
    return violations
      .slice(0, VIOLATIONS_LIMIT)
      .map(({ rule, runId }) => findingOf({ code: "invariant_violated", runId, subject: rule, ...unknown }));
  } catch (error) {
    if (failureKind(error) !== "connection") throw error;
    return [findingOf({ code: "invariants_unreadable", runId: null, subject: null, ...unknown })];
  }
}

function findingOf(found: Omit<AuditFinding, "severity" | "says" | "mend">): AuditFinding {
  return { ...found, ...AUDIT_RULES[found.code] };
}

function byWeight(one: AuditFinding, other: AuditFinding): number {
  if (one.severity !== other.severity) return one.severity === "error" ? -1 : 1;
  return (other.ageMs ?? 0) - (one.ageMs ?? 0);
}
