import { z } from "zod";

/** An id of one kind as people see it: its prefix and 26 characters. */
function id(prefix: string, what: string) {
  const shape = new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`);
  return z
    .string()
    .regex(shape, { error: `must be the id of ${what}: ${prefix}_ and 26 characters` })
    .describe(`Id of ${what}`);
}

export const RunId = id("run", "a run");
export const SessionId = id("ses", "a session");
export const CallId = id("call", "a call");
export const AttemptId = id("att", "an attempt");
export const ApprovalId = id("apr", "an approval request");
export const WorkerId = id("wrk", "a worker");
export const ScheduleId = id("sch", "a schedule");
export const MemoryId = id("mem", "a memory");
export const WebhookId = id("whk", "a webhook");
export const DeliveryId = id("dlv", "a delivery");

/** An instant on the database's clock. */
export const Instant = z.iso.datetime().describe("Instant in UTC, by the database's clock");
