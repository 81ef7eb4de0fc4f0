import type { Client } from "@holdpoint/client";
import type { Reply } from "@holdpoint/protocol";
import { z } from "zod";
import type { Case, CaseEvidence, RecordedResult } from "./scenario.ts";

type TimelineEntry = Reply<"showTimeline">["items"][number];
type Run = Reply<"showRun">;

export interface Submitted extends Case {
  readonly runId: Run["id"];
}

const PAGE = 200;
const ResultBody = z.object({ kind: z.literal("tool_result"), result: z.string(), output: z.unknown() });

/** Reads over the api what a run has left behind, and how often somebody had to take it over. */
export async function collectEvidence(
  client: Client,
  { name, runId }: Submitted,
): Promise<{ readonly evidence: CaseEvidence; readonly takeovers: number }> {
  const [run, timeline] = await Promise.all([client.showRun({ runId }), wholeTimeline(client, runId)]);
  const evidence = {
    name,
    status: run.status,
    outcome: run.outcome?.kind ?? null,
    results: timeline.flatMap(recordedResult),
  };
  return { evidence, takeovers: countTakeovers(timeline) };
}

/** Claims of a run whose owner before was lost. */
export function countTakeovers(timeline: readonly TimelineEntry[]): number {
  let lost = false;
  let takeovers = 0;
  for (const entry of timeline) {
    if (entry.kind !== "transition") continue;
    if (entry.event === "OwnerGone") lost = true;
    if (entry.event !== "Claimed") continue;
    if (lost) takeovers += 1;
    lost = false;
  }
  return takeovers;
}

async function wholeTimeline(client: Client, runId: Run["id"]): Promise<readonly TimelineEntry[]> {
  const entries: TimelineEntry[] = [];
  let cursor: string | null = null;
  do {
    const page: Reply<"showTimeline"> = await client.showTimeline({
      runId,
      payloads: true,
      limit: PAGE,
      ...(cursor === null ? {} : { cursor }),
    });
    entries.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return entries;
}

function recordedResult(entry: TimelineEntry): RecordedResult[] {
  if (entry.kind !== "step" || entry.step !== "tool_result") return [];
  const { result, output } = ResultBody.parse(entry.body);
  return [{ result, output }];
}
