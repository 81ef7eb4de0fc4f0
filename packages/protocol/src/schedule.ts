import { z } from "zod";
import { Instant, RunId, ScheduleId } from "./ids.ts";
import { AgentRef } from "./run.ts";
import { patternMistake } from "./timing.ts";

const DAY_MS = 86_400_000;

export const ScheduleName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, { error: "must be a-z, 0-9 and -, at most 64, a letter first" })
  .describe("A schedule, by name");

const Overlap = z
  .enum(["skip", "queue", "replace"])
  .describe(
    "While an earlier run has not ended: leave the slot out; let one slot wait; or ask the earlier run to stop and wait until it has",
  );

const CatchUp = z.strictObject({
  slots: z.number().int().min(0).max(100).default(1).describe("How many are made up at most, the newest"),
  withinMs: z
    .number()
    .int()
    .min(0)
    .max(366 * DAY_MS)
    .default(DAY_MS)
    .describe("How old a slot may be to be made up, in milliseconds"),
});

const cron = z.string().trim().min(1).max(200).describe("Minute, hour, day, month, weekday; or @hourly, @daily, …");
const zone = z.string().trim().min(1).max(100).describe("An IANA time zone, like Europe/Berlin");
const goal = z.string().trim().min(1).max(16_000);
const once = z.iso.datetime({ offset: true }).describe("The instant of a schedule that starts one run");

type Timing = {
  readonly cron?: string | undefined;
  readonly zone?: string | undefined;
  readonly at?: string | undefined;
};

/** What is wrong with a pattern, a zone and an instant together, beside the field that it is about; null if nothing is. */
function timingMistake({ cron: pattern, zone: clocks, at }: Timing): TimingMistake | null {
  if (pattern !== undefined && at !== undefined) return { field: "at", message: "cannot stand beside `cron`" };
  if (at !== undefined && clocks !== undefined) {
    return { field: "zone", message: "is for `cron`; `at` says it itself" };
  }
  if (pattern === undefined) {
    return clocks === undefined ? null : { field: "cron", message: "is missing beside `zone`" };
  }
  if (clocks === undefined) {
    return { field: "zone", message: "is missing: `cron` is read as the clocks of a zone show it" };
  }
  return patternMistake({ cron: pattern, zone: clocks });
}

type TimingMistake = { readonly field: keyof Timing; readonly message: string };

function checkTiming(timing: Timing, context: z.RefinementCtx): void {
  const mistake = timingMistake(timing);
  if (mistake === null) return;
  context.addIssue({ code: "custom", path: [mistake.field], message: mistake.message });
}

/** What a new schedule does: a pattern in a zone, or one instant. */
export const NewSchedule = z
  .strictObject({
    name: ScheduleName,
    agent: AgentRef.strict(),
    goal: goal.describe("The first message of each run's conversation"),
    cron: cron.optional(),
    zone: zone.optional(),
    at: once.optional(),
    overlap: Overlap.default("skip"),
    catchUp: CatchUp.default({ slots: 1, withinMs: DAY_MS }).describe(
      "What becomes of slots that nobody was there for",
    ),
  })
  .superRefine((body, context) => {
    checkTiming(body, context);
    if (body.cron !== undefined || body.at !== undefined || body.zone !== undefined) return;
    context.addIssue({ code: "custom", path: ["cron"], message: "is missing: say `cron` and `zone`, or `at`" });
  });

/** What a change says anew; what is left out stays. `cron` and `zone` come together. */
export const ScheduleChangeBody = z
  .strictObject({
    agent: AgentRef.strict().optional(),
    goal: goal.optional(),
    cron: cron.optional(),
    zone: zone.optional(),
    at: once.optional(),
    overlap: Overlap.optional(),
    catchUp: CatchUp.optional(),
  })
  .superRefine((body, context) => {
    checkTiming(body, context);
    if (Object.values(body).some((value) => value !== undefined)) return;
    context.addIssue({ code: "custom", path: [], message: "says nothing that is to change" });
  });

/** What starts runs by itself. */
export const Schedule = z
  .object({
    id: ScheduleId,
    name: ScheduleName,
    agent: AgentRef,
    goal: z.string(),
    cron: z.string().nullable(),
    zone: z.string().nullable(),
    at: Instant.nullable().describe("Of a schedule that starts one run"),
    overlap: Overlap,
    catchUp: z.object({ slots: z.number().int(), withinMs: z.number().int() }),
    paused: z.object({ at: Instant, by: z.string() }).nullable(),
    nextSlotAt: Instant.nullable().describe("Null where none follows, or it is paused"),
    queuedSlotAt: Instant.nullable().describe("The slot that waits for an earlier run"),
    createdAt: Instant,
    createdBy: z.string().describe("Its owner: its runs are asked for in this name"),
    changedAt: Instant,
    changedBy: z.string(),
  })
  .meta({ id: "Schedule" });
export type Schedule = z.output<typeof Schedule>;

/** What became of a slot. */
export const Slot = z
  .object({
    slotAt: Instant,
    state: z.enum(["started", "skipped", "queued", "replaced", "missed"]),
    manual: z.boolean().describe("A person has started it by hand"),
    startedBy: z.string().nullable(),
    sentence: z.string().describe("What became of it, and why"),
    reason: z.string().nullable(),
    earlierRunId: RunId.nullable().describe("The run that was in its way"),
    runId: RunId.nullable(),
    at: Instant.describe("When that was decided"),
  })
  .meta({ id: "Slot" });
export type Slot = z.output<typeof Slot>;

/** Who did what to a schedule. */
export const ScheduleChange = z
  .object({
    change: z.enum(["created", "changed", "paused", "resumed", "deleted"]),
    by: z.string(),
    at: Instant,
    definition: z.record(z.string(), z.unknown()).nullable().describe("What it does from then on"),
  })
  .meta({ id: "ScheduleChange" });
export type ScheduleChange = z.output<typeof ScheduleChange>;
