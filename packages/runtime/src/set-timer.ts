import type { Call, Next } from "@holdpoint/core";
import { isFor, refuseCall } from "./act-on-call.ts";
import type { Tool } from "./define-tool.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** The end of the year 9999: dates beyond are not written alike everywhere. */
const LATEST_MS = 253_402_300_799_999;

/** Fixes the moment at which a timer goes off. */
export function setTimer(act: Act, { call }: Extract<Next, { do: "set_timer" }>): Promise<Stored> {
  const { run, context } = act;
  const tool = context.agent.tools.get(call.tool);
  if (tool === undefined || tool.due === null || !isFor(tool, call)) return refuseCall(act, call, "incompatible_tool");
  const due = dueOf(tool.due, call.args, run.nowMs);
  if (!Number.isFinite(due) || due > LATEST_MS) return refuseCall(act, call, "timer_out_of_range");
  return run.commit({
    steps: [{ kind: "timer_set", callId: call.id, dueAtMs: Math.round(due) }],
    currentStep: call.tool,
    progress: false,
  });
}

function dueOf(read: NonNullable<Tool["due"]>, args: Call["args"], nowMs: number): number {
  const due = read(args as Parameters<typeof read>[0]);
  return due instanceof Date ? due.getTime() : nowMs + due;
}
