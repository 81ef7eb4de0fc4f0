import type { LivenessVerdict } from "./liveness.ts";
import { isLostReason, LOST_REASONS } from "./lost.ts";
import type { EffectClass } from "./restart.ts";
import type { WaitingFor } from "./state.ts";
import { isTerminal, type Status } from "./status.ts";

/** Everything that is known about why a run stands where it stands; ids and instants as the reader should see them. */
export interface ExplainedRun {
  readonly id: string;
  readonly status: Status;
  readonly sentence: string;
  readonly agent: string;
  readonly waitingFor: WaitingFor | null;
  readonly waitDeadline: string | null;
  readonly nextLookUp: string | null;
  readonly owner: ExplainedOwner | null;
  readonly attempts: readonly ExplainedAttempt[];
  readonly approvals: readonly ExplainedApproval[];
  readonly service: ExplainedService | null;
  /** How many live workers have its agent in its version. */
  readonly servedBy: number;
  /** How many runs of the same agent and version have been queued for longer; null while it is not queued. */
  readonly queuedBefore: number | null;
  readonly stopRequestedAt: string | null;
  readonly pauseRequestedAt: string | null;
  readonly takeovers: number;
  readonly liveChildren: number;
  /** Children that have not ended, its own ones only. */
  readonly children: readonly { readonly id: string; readonly status: Status }[];
  /** It is worked on elsewhere: its owner is whoever has it in hands, by a name for people. */
  readonly isTask?: boolean;
  readonly verdict: ExplainedVerdict | null;
}

export interface ExplainedOwner {
  readonly workerId: string;
  readonly host: string;
  readonly pid: number;
  readonly heardAt: string;
  readonly leaseUntil: string;
  /** When it is taken for gone unless it renews; null: it has been declared gone. */
  readonly goneAt: string | null;
  readonly silent: boolean;
  readonly progressDueAt: string | null;
  readonly drainRequestedAt: string | null;
}

export interface ExplainedAttempt {
  readonly id: string;
  readonly tool: string;
  readonly number: number;
  readonly effectClass: EffectClass;
  readonly startedAt: string;
  readonly deadlineAt: string;
  readonly overdue: boolean;
  readonly lookUps: number;
}

export interface ExplainedApproval {
  readonly id: string;
  readonly tool: string;
  readonly roles: readonly string[];
  readonly users: readonly string[];
  readonly deadline: string;
  /** People who may decide it at present: in one of the roles or named, and not excluded. */
  readonly deciders: number;
}

export interface ExplainedService {
  readonly name: string;
  readonly reason: string;
  readonly since: string;
  readonly closedUntil: string | null;
}

export interface ExplainedVerdict {
  readonly verdict: LivenessVerdict;
  readonly rule: string;
  readonly reason: string | null;
  readonly until: string | null;
  readonly at: string;
}

export const EXPLAINED_ABOUT = [
  "status",
  "request",
  "owner",
  "attempt",
  "approval",
  "service",
  "queue",
  "child",
  "takeovers",
  "verdict",
] as const;

/** One link of the chain of evidence, in words. */
export interface Reason {
  readonly about: (typeof EXPLAINED_ABOUT)[number];
  readonly text: string;
}

/** Why a run stands where it stands, from the present back to what it rests on. */
export function explainReasons(run: ExplainedRun): readonly Reason[] {
  const status = { about: "status", text: run.sentence } as const;
  if (isTerminal(run.status)) return [status];
  const texts = (about: Reason["about"], all: readonly (string | null)[]): readonly Reason[] =>
    all.flatMap((text) => (text === null ? [] : [{ about, text }]));
  return [
    status,
    ...texts("request", [stopText(run), pauseText(run)]),
    ...texts("owner", ownerTexts(run)),
    ...texts(
      "attempt",
      run.attempts.map((attempt) => attemptText(attempt, run)),
    ),
    ...texts("approval", run.approvals.map(approvalText)),
    ...texts("service", [serviceText(run)]),
    ...texts("queue", [queueText(run)]),
    ...texts("child", childTexts(run)),
    ...texts("takeovers", [takeoversText(run)]),
    ...texts("verdict", [verdictText(run.verdict)]),
  ];
}

function stopText({ stopRequestedAt }: ExplainedRun): string | null {
  return stopRequestedAt === null ? null : `It was asked to stop at ${stopRequestedAt}: it starts nothing more.`;
}

function pauseText({ pauseRequestedAt, status }: ExplainedRun): string | null {
  if (pauseRequestedAt === null) return null;
  const when = status === "paused" ? "" : ", and pauses once its present step is over";
  return `It was asked to pause at ${pauseRequestedAt}${when}.`;
}

function ownerTexts(run: ExplainedRun): readonly (string | null)[] {
  return run.isTask === true ? [executorText(run)] : workerTexts(run);
}

function executorText({ owner }: ExplainedRun): string | null {
  if (owner === null) return null;
  const { host, heardAt, leaseUntil, goneAt, silent } = owner;
  if (!silent) return `${host} has it in hands, was last heard of at ${heardAt}, and has to be again by ${leaseUntil}.`;
  const after = goneAt === null ? "it has been given up" : `unless it is heard of, it is given up at ${goneAt}`;
  return `${host} has it in hands and was last heard of at ${heardAt}; it had to be by ${leaseUntil}, and ${after}.`;
}

function workerTexts({ owner, status, agent }: ExplainedRun): readonly (string | null)[] {
  if (owner === null) return [status === "running" ? "No worker is known to have it." : null];
  const { workerId, host, pid, heardAt, leaseUntil, goneAt, silent, progressDueAt, drainRequestedAt } = owner;
  const who = `${workerId} (process ${pid} on ${host})`;
  const after = goneAt === null ? "it has been declared gone" : `unless it renews, it is taken for gone at ${goneAt}`;
  return [
    silent
      ? `Its worker ${who} was last heard of at ${heardAt}; its lease was over at ${leaseUntil}, and ${after}.`
      : `Its worker ${who} was last heard of at ${heardAt}, and has its lease until ${leaseUntil}.`,
    progressDueAt === null || silent
      ? null
      : `Its next progress is due at ${progressDueAt}; later than that, another worker of ${agent} takes it up.`,
    drainRequestedAt === null ? null : `Its worker was asked to drain at ${drainRequestedAt}: it gives the run back.`,
  ];
}

const OFFERS: Readonly<Record<EffectClass, string>> = {
  read: "a read",
  timer: "a timer",
  children: "child runs",
  key: "an effect with a key",
  look_up: "an effect that can be looked up",
  both: "an effect with a key that can be looked up",
  unsafe: "an effect that can neither be repeated nor looked up",
};

function attemptText(attempt: ExplainedAttempt, { owner, nextLookUp }: ExplainedRun): string {
  const { tool, number, effectClass, startedAt, deadlineAt, overdue, lookUps } = attempt;
  const call = `Attempt ${number} of ${tool} (${OFFERS[effectClass]}), sent at ${startedAt}, has no known outcome`;
  if (owner !== null && !overdue) return `${call} yet; its worker waits for it until ${deadlineAt}.`;
  const asked = lookUps === 0 ? "" : `; looked up ${lookUps} times so far`;
  const next = nextLookUp === null ? "" : `; the next look-up is due at ${nextLookUp}`;
  return `${call}; its time was over at ${deadlineAt}${asked}${next}.`;
}

function approvalText({ id, tool, roles, users, deadline, deciders }: ExplainedApproval): string {
  const whom = [...roles.map((role) => `the role ${role}`), ...users].join(" or ") || "nobody who is named";
  const held =
    deciders === 0 ? " Nobody may decide it at present: nobody has the role, or all who do are excluded." : "";
  return `${id} asks ${whom} about ${tool}, until ${deadline}; ${deciders} may decide it.${held}`;
}

function serviceText({ service }: ExplainedRun): string | null {
  if (service === null) return null;
  const { name, reason, since, closedUntil } = service;
  const closed = closedUntil === null ? "it may be called again" : `it is closed for all runs until ${closedUntil}`;
  return `The service ${name} has been ${reason} since ${since}; ${closed}.`;
}

function queueText({ queuedBefore, servedBy, agent, isTask }: ExplainedRun): string | null {
  if (queuedBefore === null) return null;
  if (isTask === true)
    return `${agent} is done elsewhere; ${queuedBefore} of its runs have waited for somebody for longer.`;
  if (servedBy === 0) return `No live worker has ${agent}: nobody takes it up.`;
  const workers = servedBy === 1 ? "One live worker has" : `${servedBy} live workers have`;
  return `${workers} ${agent}; ${queuedBefore} of its runs have been queued for longer.`;
}

function childTexts({ liveChildren, children }: ExplainedRun): readonly string[] {
  const missing = Math.max(0, liveChildren - children.length);
  const gone = missing === 0 ? [] : [`${missing} of its ${liveChildren} live child runs are not there any more.`];
  return [...children.map(({ id, status }) => `Its child ${id} is ${words(status)}.`), ...gone];
}

function takeoversText({ takeovers }: ExplainedRun): string | null {
  if (takeovers === 0) return null;
  const claims = takeovers === 1 ? "One claim has" : `${takeovers} claims have`;
  return `${claims} followed a loss since it last stored a result; after three losses in a row an operator is asked.`;
}

const VERDICTS: Readonly<Record<LivenessVerdict, string>> = {
  active: "well",
  backing_present: "kept: the child runs that it waits for are there",
  not_authoritative_here: "kept: only a worker can ask the other side",
  grace_pending: "kept",
  evidence_unreadable: "kept: what would prove that it lives cannot be read",
  lost: "lost",
};

function verdictText(judged: ExplainedVerdict | null): string | null {
  if (judged === null) return null;
  const { verdict, reason, until, rule, at } = judged;
  const link = verdict === "lost" ? ", because" : ", although";
  const seen = reason !== null && isLostReason(reason) ? `${link} ${LOST_REASONS[reason].seen}` : "";
  const end = until === null ? "" : ` until ${until}`;
  return `Last judged at ${at}, by the rule ${words(rule)}: ${VERDICTS[verdict]}${end}${seen}.`;
}

/** Codes are shown as words. */
function words(code: string): string {
  return code.replaceAll("_", " ");
}
