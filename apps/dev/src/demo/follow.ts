import type { Client } from "@holdpoint/client";
import type { Run, TimelineEntry } from "@holdpoint/protocol";
import type { Crew } from "./crew.ts";
import { tell } from "./in-words.ts";
import type { Narrator } from "./narrator.ts";
import { until } from "./until.ts";

/** Follows one run and tells what happens to it, as its own timeline says. */
export interface Follower {
  /** Tells everything new until the run is as wanted. */
  untilRun(what: string, wanted: (run: Run) => boolean): Promise<Run>;
  /** Tells everything new up to now; returns the whole timeline. */
  catchUp(): Promise<readonly TimelineEntry[]>;
}

interface FollowOptions {
  readonly client: Client;
  readonly runId: string;
  readonly crew: Crew;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
  /** Only what people and outcomes are about: holds, decisions, refusals, the end. */
  readonly briefly: boolean;
}

const LIMIT_MS = 60_000;
const PAGE = 200;

export function followRun({ client, runId, crew, narrator, signal, briefly }: FollowOptions): Follower {
  const told = new Set<string>();

  const catchUp = async (): Promise<readonly TimelineEntry[]> => {
    const { items } = await client.showTimeline({ runId, limit: PAGE }, { signal });
    const startMs = Date.parse(items[0]?.at ?? "");
    for (const entry of items) {
      const id = idOf(entry);
      if (told.has(id)) continue;
      told.add(id);
      if (isPartOfEdit(entry, items) || (briefly && !isBrief(entry))) continue;
      narrator.event({ atMs: Date.parse(entry.at) - startMs, who: await whoDid(entry, items, crew), ...tell(entry) });
    }
    return items;
  };
  return {
    catchUp,
    async untilRun(what, wanted) {
      const ask = async (): Promise<Run | null> => {
        const run = await client.showRun({ runId }, { signal });
        await catchUp();
        return wanted(run) ? run : null;
      };
      return until(ask, { what, limitMs: LIMIT_MS, signal });
    },
  };
}

/** Whether this belongs to a short story of a run. */
function isBrief(entry: TimelineEntry): boolean {
  if (entry.kind !== "transition") return entry.kind === "decision";
  return entry.event === "Held" || entry.event === "Ended";
}

/** Whoever edits approves what it has become, in the same moment: one deed, told once. */
function isPartOfEdit(entry: TimelineEntry, all: readonly TimelineEntry[]): boolean {
  if (entry.kind !== "decision" || entry.decision !== "approve") return false;
  return all.some(
    (other) =>
      other.kind === "decision" &&
      other.decision === "approve_with_edits" &&
      other.at === entry.at &&
      other.actor.id === entry.actor.id,
  );
}

/** Who did it, by the story's names. A step has no actor of its own: it was done under the claim before it. */
export async function whoDid(entry: TimelineEntry, all: readonly TimelineEntry[], crew: Crew): Promise<string> {
  if ("actor" in entry) return nameOf(entry.actor, crew);
  if (entry.kind !== "step") return "holdpoint";
  const before = all.slice(0, all.indexOf(entry));
  const claim = before.findLast((it) => it.kind === "transition" && it.event === "Claimed");
  return claim?.kind === "transition" ? nameOf(claim.actor, crew) : "holdpoint";
}

async function nameOf({ kind, id }: { readonly kind: string; readonly id: string }, crew: Crew): Promise<string> {
  if (kind === "worker") return (await crew.find(id)).name;
  return kind === "supervisor" || kind === "sweeper" ? kind : id;
}

function idOf(entry: TimelineEntry): string {
  switch (entry.kind) {
    case "transition":
    case "step":
      return `${entry.kind} ${entry.seq}`;
    case "decision":
      return `decision ${entry.approvalId} ${entry.at}`;
    case "reminder":
      return `reminder ${entry.approvalId} ${entry.stage} ${entry.at}`;
    case "callback":
      return `callback ${entry.source} ${entry.eventId}`;
    case "late_evidence":
      return `late_evidence ${entry.attemptId} ${entry.at}`;
    case "refusal":
      return `refusal ${entry.at} ${entry.event}`;
  }
}
