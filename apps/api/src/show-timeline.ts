import type { TimelineEntry } from "@holdpoint/protocol";
import { showId } from "@holdpoint/store";
import type { TimelineEntry as StoredEntry } from "@holdpoint/store/read";
import { showActor, shown } from "./show.ts";

/** What happened to a run, as it crosses HTTP. */
export function showEntry(entry: StoredEntry): TimelineEntry {
  const at = shown(entry.atMs);
  switch (entry.kind) {
    case "transition": {
      const { kind, seq, from, to, event, reason } = entry;
      return { kind, at, seq, from, to, event, actor: showActor(entry.actorKind, entry.actorId), reason };
    }
    case "step": {
      const { kind, seq, step, line, body } = entry;
      return { kind, at, seq, step, line, ...(body === null ? {} : { body }) };
    }
    case "decision": {
      const { kind, approvalId, tool, decision, level, actorId, note, brought } = entry;
      const actor = { kind: "approver", id: actorId };
      const shownId = showId("approval", approvalId);
      return { kind, at, approvalId: shownId, tool, decision, level, actor, note, ...brought };
    }
    case "reminder": {
      const { kind, approvalId, tool, stage } = entry;
      return { kind, at, approvalId: showId("approval", approvalId), tool, stage };
    }
    case "callback": {
      const { kind, source, eventId, tool, status } = entry;
      return { kind, at, source, eventId, tool, status };
    }
    case "late_evidence": {
      const { kind, attemptId, tool, number, settledAs, outcome } = entry;
      return { kind, at, attemptId: showId("attempt", attemptId), tool, attempt: number, settledAs, outcome };
    }
    case "refusal": {
      const { kind, event, rule, status } = entry;
      return { kind, at, event, rule, status, actor: showActor(entry.actorKind, entry.actorId) };
    }
  }
}
