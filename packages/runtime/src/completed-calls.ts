import type { JsonValue, RunHistory } from "@holdpoint/core";
import { decode } from "./codec.ts";
import type { CompletedCall } from "./define-agent.ts";

/** The results of one run's calls, as its agent sees them; each step is read once, however long the run becomes. */
export interface CompletedCalls {
  /** All of this history, which goes on with those that were asked about before. */
  of(history: RunHistory): readonly CompletedCall[];
}

export function openCompletedCalls(): CompletedCalls {
  const completed: (Omit<CompletedCall, "output"> & { readonly stored: JsonValue })[] = [];
  let read = 0;
  return {
    of: ({ known: { steps, callById } }) => {
      for (; read < steps.length; read += 1) {
        const body = steps[read]?.body;
        const tool = body?.kind === "tool_result" ? callById.get(body.callId)?.tool : undefined;
        if (body?.kind !== "tool_result" || tool === undefined) continue;
        completed.push({ tool, result: body.result, stored: body.output });
      }
      // The agent's own, made anew from what is stored: whatever it does to an output, nobody else sees it.
      return completed.map(({ stored, ...call }) => ({ ...call, output: decode(stored) }));
    },
  };
}
