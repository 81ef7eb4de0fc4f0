import type { JsonObject, JsonValue } from "./json.ts";
import { canonicalJson } from "./json.ts";
import type { Hold } from "./state.ts";

/** What whoever is asked may answer. */
export const DECISIONS = [
  "approve",
  "approve_with_edits",
  "reject",
  "reject_and_abort",
  "respond",
  "skip",
  "escalate",
] as const;
export type DecisionKind = (typeof DECISIONS)[number];

/** Who may decide: everybody with one of the roles, and these users. */
export interface Approvers {
  readonly roles: readonly string[];
  readonly users: readonly string[];
}

/** The next people who are asked when those before them have not decided in time, or have passed it on. */
export interface EscalationLevel {
  readonly approvers: Approvers;
  /** How long these have, in milliseconds. */
  readonly deadlineMs: number;
}

/** Who has to release a call, how many of them, until when, and what happens otherwise. */
export interface ApprovalRule {
  readonly rule: string;
  readonly approvers: Approvers;
  /** How many different people have to approve. */
  readonly quorum: number;
  /** One rejection rejects; otherwise as many as have to approve. */
  readonly veto: boolean;
  /** Whoever asked for the run, or steers it, may not approve. */
  readonly fourEyes: boolean;
  readonly decisions: readonly DecisionKind[];
  /** What an answer given instead of the call must look like, as JSON schema; null: any JSON. */
  readonly answerSchema: JsonObject | null;
  /** Limits the decision, in milliseconds from the request. */
  readonly deadlineMs: number;
  /** `extend`: once, by the same time again, then reject. `escalate`: to the next level; after the last, the operator. */
  readonly onDeadline: ApprovalOnDeadline;
  /** When the approvers are reminded, in milliseconds from the request, ascending. */
  readonly remindAfterMs: readonly number[];
  readonly escalation: readonly EscalationLevel[];
  /** How long an approval may be spent after the decision, in milliseconds. */
  readonly validForMs: number;
}

/** There is no `approve`: silence never releases an effect. */
export type ApprovalOnDeadline = "reject" | "abort" | "operator" | "escalate" | "extend";

/** Where an approval request stands. Only `pending` can be decided, only `approved` can be spent. */
export const APPROVAL_STATES = [
  "pending",
  "approved",
  "spent",
  "rejected",
  "answered",
  "skipped",
  "expired",
  "superseded",
  "withdrawn",
] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

/** A request that nobody has decided for good. */
export interface PendingRequest {
  readonly id: string;
  readonly callId: string;
  readonly terms: ApprovalRule;
  /** 0 for those who were asked first, n for the n-th level of escalation. */
  readonly level: number;
  readonly extended: boolean;
  /** On the database's clock, in milliseconds since the epoch. */
  readonly deadlineMs: number;
}

/** A decision as it is on record. */
export interface RecordedDecision {
  readonly by: string;
  readonly kind: DecisionKind;
  readonly level: number;
  /** The arguments' hash after an edit, or the answer; null where the kind says all. */
  readonly payload: JsonValue;
}

/** A request with all that a decision about it depends on. */
export interface DecidableRequest extends PendingRequest {
  readonly state: ApprovalState;
  readonly argsHash: string;
  readonly requester: string;
  /** The people whom the rule of four eyes keeps from approving. */
  readonly excluded: readonly string[];
  readonly decided: readonly RecordedDecision[];
}

/** What a person decides about a request. */
export interface GivenDecision {
  readonly kind: DecisionKind;
  readonly by: string;
  /** The person's roles, from the present assignments. */
  readonly roles: readonly string[];
  /** The hash that the person was shown. */
  readonly argsHash: string;
  readonly payload: JsonValue;
}

/** Why a decision is refused. */
export type DecisionRule =
  | "own_request"
  | "not_an_approver"
  | "approval_expired"
  | "approval_withdrawn"
  | "approval_superseded"
  | "already_decided"
  | "hash_mismatch"
  | "decision_not_offered"
  | "nothing_to_escalate_to";

/** What a decision does to its request. */
export type Judgement =
  | { readonly refuse: DecisionRule }
  /** The same person has decided the same before: the first answer again. */
  | { readonly repeated: true }
  | { readonly become: Exclude<ApprovalState, "spent" | "expired" | "withdrawn">; readonly aborts: boolean };

const NEEDS_FOUR_EYES: ReadonlySet<DecisionKind> = new Set(["approve", "approve_with_edits", "respond"]);
const REJECTS: ReadonlySet<DecisionKind> = new Set(["reject", "reject_and_abort"]);

/** Judges a decision on the request as it is. The deadline is judged by the statement that stores it. */
export function judgeDecision(request: DecidableRequest, given: GivenDecision): Judgement {
  const refusal = authority(request, given);
  const mine = request.decided.filter(({ by }) => by === given.by);
  const now = mine.filter(({ level }) => level === request.level);
  // Whoever is asked at the next level as well decides anew; but a second click passes nothing on twice.
  const isAnsweredAtAnyLevel = refusal !== null || given.kind === "escalate";
  const repeats = (isAnsweredAtAnyLevel ? mine : now).some((before) => isSame(before, given));
  if (repeats && given.argsHash === request.argsHash) return { repeated: true };
  if (refusal !== null) return { refuse: refusal };
  const rule = CLOSED[request.state] ?? openRule(request, given, now);
  return rule === null ? outcomeOf(request, given) : { refuse: rule };
}

/** Who may decide at this level. */
export function approversAt({ approvers, escalation }: ApprovalRule, level: number): Approvers {
  return level === 0 ? approvers : (escalation[level - 1]?.approvers ?? approvers);
}

function authority(
  { terms, level, excluded, requester }: DecidableRequest,
  { kind, by, roles }: GivenDecision,
): DecisionRule | null {
  if (NEEDS_FOUR_EYES.has(kind) && excluded.includes(by)) return "own_request";
  const { users, roles: asked } = approversAt(terms, level);
  if (users.includes(by) || asked.some((role) => roles.includes(role))) return null;
  // Whoever asked for something may take it back.
  return by === requester && REJECTS.has(kind) ? null : "not_an_approver";
}

function isSame(before: RecordedDecision, { kind, payload }: GivenDecision): boolean {
  return before.kind === kind && canonicalJson(before.payload) === canonicalJson(payload);
}

const CLOSED: Readonly<Partial<Record<ApprovalState, DecisionRule>>> = {
  expired: "approval_expired",
  withdrawn: "approval_withdrawn",
  superseded: "approval_superseded",
  approved: "already_decided",
  spent: "already_decided",
  rejected: "already_decided",
  answered: "already_decided",
  skipped: "already_decided",
};

function openRule(
  { terms, level, argsHash }: DecidableRequest,
  given: GivenDecision,
  mine: readonly RecordedDecision[],
): DecisionRule | null {
  if (!terms.decisions.includes(given.kind)) return "decision_not_offered";
  if (given.kind === "escalate" && level >= terms.escalation.length) return "nothing_to_escalate_to";
  if (mine.length > 0) return "already_decided";
  return argsHash === given.argsHash ? null : "hash_mismatch";
}

function outcomeOf({ terms, level, decided, requester }: DecidableRequest, { kind, by }: GivenDecision): Judgement {
  const count = (kinds: ReadonlySet<DecisionKind>) =>
    decided.filter((each) => each.level === level && kinds.has(each.kind)).length + 1;
  const aborts = false;
  switch (kind) {
    case "approve":
      return { become: count(APPROVES) >= terms.quorum ? "approved" : "pending", aborts };
    case "approve_with_edits":
      return { become: "superseded", aborts };
    case "reject": {
      const isFinal = terms.veto || by === requester || count(REJECTS) >= terms.quorum;
      return { become: isFinal ? "rejected" : "pending", aborts };
    }
    case "reject_and_abort":
      return { become: "rejected", aborts: true };
    case "respond":
      return { become: "answered", aborts };
    case "skip":
      return { become: "skipped", aborts };
    case "escalate":
      return { become: "pending", aborts };
  }
}

const APPROVES: ReadonlySet<DecisionKind> = new Set(["approve"]);

/** What happens to a request whose deadline has passed, or that its approvers have passed on. */
export type RequestChange =
  | { readonly id: string; readonly become: "expired" | "withdrawn" }
  /** The next level is asked, until its own deadline. */
  | { readonly id: string; readonly become: "pending"; readonly level: number; readonly deadlineMs: number }
  | { readonly id: string; readonly become: "pending"; readonly extended: true; readonly deadlineMs: number };

/** The next level of a request, asked from now on. */
export function escalated({ id, terms, level }: PendingRequest, nowMs: number): RequestChange | null {
  const next = terms.escalation[level];
  return next === undefined ? null : { id, become: "pending", level: level + 1, deadlineMs: nowMs + next.deadlineMs };
}

/** What becomes of a hold's requests at a deadline. */
export interface PassedDeadline {
  readonly changes: readonly RequestChange[];
  /** The hold that remains; null if it is over. */
  readonly remaining: Hold | null;
  readonly onDeadline: "reject" | "abort" | "operator";
  /** The call whose request has ended the hold; null if none did before the others. */
  readonly subject: string | null;
}

/**
 * What becomes of the pending requests of one hold, some of which are due. Each ends as it says itself; one that aborts
 * the run, or asks for an operator, ends the hold and takes with it what is not over.
 */
export function passDeadlines(pending: readonly PendingRequest[], nowMs: number): PassedDeadline {
  const due = pending.filter(({ deadlineMs }) => deadlineMs <= nowMs);
  const changes = due.map((request) => ({ request, ...passOne(request, nowMs) }));
  const ending = changes.find(({ ends }) => ends === "abort") ?? changes.find(({ ends }) => ends === "operator");
  if (ending !== undefined) {
    const expired = new Set(
      changes.flatMap(({ request, change }) => (change.become === "expired" ? [request.id] : [])),
    );
    // What an operator decides instead is asked anew by a retry.
    const goesOn = new Set(changes.flatMap(({ request, ends }) => (ends === "operator" ? [request.id] : [])));
    const onDeadline = ending.ends === "abort" ? "abort" : "operator";
    const closed = pending.map(({ id }): RequestChange => {
      const isOver = expired.has(id) && (onDeadline === "abort" || !goesOn.has(id));
      return { id, become: isOver ? "expired" : "withdrawn" };
    });
    return { changes: closed, remaining: null, onDeadline, subject: ending.request.callId };
  }
  const changed = new Map(changes.map(({ request, change }) => [request.id, change]));
  const left = pending.flatMap((request) => stillPending(request, changed.get(request.id)));
  const remaining = left.length === 0 ? null : holdOf(left);
  return { changes: [...changed.values()], remaining, onDeadline: "reject", subject: null };
}

interface Passed {
  readonly change: RequestChange;
  readonly ends: "reject" | "abort" | "operator";
}

function passOne(request: PendingRequest, nowMs: number): Passed {
  const { id, terms, extended } = request;
  const expired: RequestChange = { id, become: "expired" };
  switch (terms.onDeadline) {
    case "reject":
      return { change: expired, ends: "reject" };
    case "extend": {
      const again: RequestChange = { id, become: "pending", extended: true, deadlineMs: nowMs + timeAt(request) };
      return { change: extended ? expired : again, ends: "reject" };
    }
    case "escalate": {
      const change = escalated(request, nowMs);
      return change === null ? { change: expired, ends: "operator" } : { change, ends: "reject" };
    }
    case "abort":
    case "operator":
      return { change: expired, ends: terms.onDeadline };
  }
}

/** How long those who are asked at the present level have, in milliseconds. */
function timeAt({ terms, level }: PendingRequest): number {
  return level === 0 ? terms.deadlineMs : (terms.escalation[level - 1]?.deadlineMs ?? terms.deadlineMs);
}

function stillPending(request: PendingRequest, change: RequestChange | undefined): readonly PendingRequest[] {
  return change === undefined ? [request] : applyChange(request, change);
}

/** A request after a change: none if it is not pending any more. */
export function applyChange(request: PendingRequest, change: RequestChange): readonly PendingRequest[] {
  if (change.become !== "pending") return [];
  const { deadlineMs } = change;
  return [
    "level" in change
      ? { ...request, level: change.level, deadlineMs }
      : { ...request, extended: change.extended, deadlineMs },
  ];
}

/**
 * The hold of a run that waits for these requests: until the first of their deadlines, and for those who are asked by
 * the request that ends with it.
 *
 * @throws {RangeError} there is no request.
 */
export function holdOf(pending: readonly PendingRequest[]): Hold {
  const [first] = pending.toSorted((a, b) => a.deadlineMs - b.deadlineMs);
  if (first === undefined) throw new RangeError("A hold for approval needs a pending request");
  return { ...approvalHold(first), deadline: { at: first.deadlineMs } };
}

/** Everything of a hold that one request decides, but for the deadline. */
function approvalHold({
  callId,
  terms,
  level,
}: Pick<PendingRequest, "callId" | "terms" | "level">): Omit<Hold, "deadline"> {
  const { roles, users } = approversAt(terms, level);
  const principal = [...roles.map((role) => `role:${role}`), ...users].join(" or ");
  return {
    kind: "approval",
    waitingFor: {
      kind: "approvers",
      principal,
      ...(terms.quorum > 1 ? { quorum: terms.quorum } : {}),
      subject: callId,
      reason: terms.rule,
    },
    onDeadline: terms.onDeadline,
  };
}
