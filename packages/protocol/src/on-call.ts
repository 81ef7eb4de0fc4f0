import { EFFECT_CLASSES, EXPLAINED_ABOUT, LIVENESS_VERDICTS } from "@holdpoint/core";
import { z } from "zod";
import { ApprovalId, AttemptId, Instant, RunId, WorkerId } from "./ids.ts";
import { Json } from "./json.ts";
import { AgentRef, Status } from "./run.ts";

const EffectClass = z
  .enum(EFFECT_CLASSES)
  .describe("What the other side offers: `key` acts once for one id, `look_up` can be asked, `both`, `unsafe` neither");

const Verdict = z.object({
  verdict: z.enum(LIVENESS_VERDICTS),
  rule: z.string().describe("The rule that judged"),
  reason: z.string().nullable(),
  until: Instant.nullable().describe("Until when it is waited for"),
  at: Instant,
  evidence: Json.describe("What it was made from: names and instants"),
});

const Attempt = z.object({
  id: AttemptId,
  tool: z.string(),
  number: z.number().int(),
  effectClass: EffectClass,
  operationId: z.string(),
  externalRef: z.string().nullable(),
  startedAt: Instant,
  deadlineAt: Instant,
  overdue: z.boolean().describe("Its own time is over: nobody waits for it any more"),
  lookUps: z.number().int(),
});

const Owner = z.object({
  workerId: WorkerId,
  host: z.string(),
  pid: z.number().int(),
  heardAt: Instant.describe("When it renewed its lease last"),
  leaseUntil: Instant,
  goneAt: Instant.nullable().describe("When it is taken for gone unless it renews; null: it has been declared gone"),
  silent: z.boolean(),
  progressDueAt: Instant.nullable(),
  drainRequestedAt: Instant.nullable(),
});

/** One run of an explained tree. */
export const ExplainedRun = z
  .object({
    id: RunId,
    depth: z.number().int().describe("0 for the run that was asked about, 1 for its children …"),
    parent: RunId.nullable(),
    status: Status,
    agent: AgentRef,
    currentStep: z.string().nullable(),
    lastCompleted: z.string().nullable(),
    reasons: z
      .array(z.object({ about: z.enum(EXPLAINED_ABOUT), text: z.string() }))
      .describe("The chain of evidence in words, from the present back to what it rests on"),
    waysOn: z
      .array(z.object({ text: z.string(), command: z.string().nullable() }))
      .describe("What would move it; null where that comes by itself"),
    owner: Owner.nullable(),
    attempts: z.array(Attempt).describe("Calls of which nobody knows yet how they ended"),
    approvals: z.array(
      z.object({
        id: ApprovalId,
        tool: z.string(),
        roles: z.array(z.string()),
        users: z.array(z.string()),
        deadline: Instant,
        deciders: z.number().int().describe("People who may decide it at present"),
      }),
    ),
    service: z
      .object({ name: z.string(), reason: z.string(), since: Instant, closedUntil: Instant.nullable() })
      .nullable(),
    servedBy: z.number().int().describe("Live workers that have its agent in its version"),
    queuedBefore: z.number().int().nullable(),
    takeovers: z.number().int(),
    verdict: Verdict.nullable().describe("The last verdict about whether it lives; null: it has never looked silent"),
    recent: z.array(
      z.object({
        seq: z.number().int(),
        from: Status.nullable(),
        to: Status,
        event: z.string(),
        actor: z.object({ kind: z.string(), id: z.string() }),
        reason: z.string().nullable(),
        at: Instant,
      }),
    ),
  })
  .meta({ id: "ExplainedRun" });
export type ExplainedRun = z.output<typeof ExplainedRun>;

/** Why a run stands where it stands. */
export const Explanation = z
  .object({
    at: Instant,
    runs: z.array(ExplainedRun).describe("The run, then its live descendants, each before its own children"),
    cut: z.boolean().describe("There are more live descendants than are told"),
    ancestors: z.array(z.object({ id: RunId, status: Status })).describe("From its parent up to the root"),
  })
  .meta({ id: "Explanation" });
export type Explanation = z.output<typeof Explanation>;

const OpenEffect = z.object({
  attemptId: AttemptId,
  tool: z.string(),
  number: z.number().int(),
  effectClass: EffectClass,
  startedAt: Instant,
  deadlineAt: Instant,
  overdue: z.boolean(),
  settledBy: z.string().describe("How the next owner finds out what became of it, in words"),
});

/** What becomes of a run that loses its worker. */
export const LossForecast = z
  .object({
    runId: RunId,
    status: Status,
    agent: AgentRef,
    currentStep: z.string().nullable(),
    becomes: Status,
    text: z.string().describe("What happens to it, in words"),
    effects: z.array(OpenEffect),
  })
  .meta({ id: "LossForecast" });
export type LossForecast = z.output<typeof LossForecast>;

/** What is in flight on workers, and what a restart does to it. */
export const RestartPlan = z
  .object({
    workers: z.array(
      z.object({
        workerId: WorkerId,
        host: z.string(),
        pid: z.number().int(),
        silent: z.boolean(),
        drainRequestedAt: Instant.nullable(),
        runs: z.array(LossForecast),
        drained: z.string().describe("What happens if it is drained, in words"),
        killed: z.string().describe("What happens if its process is killed, in words"),
      }),
    ),
  })
  .meta({ id: "RestartPlan" });
export type RestartPlan = z.output<typeof RestartPlan>;

/** What taking a run from its worker does, or has done. */
export const Takeover = z
  .object({
    applied: z.boolean(),
    workerId: WorkerId.nullable().describe("Who has it, or had it"),
    forecast: LossForecast,
    status: Status,
  })
  .meta({ id: "Takeover" });
export type Takeover = z.output<typeof Takeover>;

export const CHECK_RESULTS = ["ok", "warn", "fail"] as const;

/** One thing that was looked at. */
export const Check = z
  .object({
    name: z.string(),
    result: z.enum(CHECK_RESULTS),
    text: z.string().describe("What was found"),
    todo: z.string().nullable().describe("What to do about it; null where nothing is to be done"),
  })
  .meta({ id: "Check" });
export type Check = z.output<typeof Check>;
