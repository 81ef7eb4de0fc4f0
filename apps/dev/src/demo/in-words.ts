import type { TimelineEntry } from "@holdpoint/protocol";

/** A line of the story: what happened, and at its side how the run's status moved. */
export interface Told {
  readonly what: string;
  readonly side: string;
}

/** A timeline's entry as the story tells it. */
export function tell(entry: TimelineEntry): Told {
  switch (entry.kind) {
    case "transition": {
      // What arrived has a line of its own before this.
      const reason = entry.event === "FactArrived" ? null : entry.reason;
      const why = reason === null ? "" : ` (${reason.replaceAll("_", " ")})`;
      return { what: `${EVENTS[entry.event] ?? entry.event}${why}`, side: moved(entry) };
    }
    case "step":
      return { what: entry.line, side: "" };
    case "decision":
      return { what: `${DECIDES[entry.decision]} ${entry.tool}`, side: "" };
    case "reminder":
      return { what: `${entry.tool}: approvers reminded (${entry.stage})`, side: "" };
    case "callback":
      return { what: `${entry.tool}: ${entry.source} reports ${entry.status}`, side: "" };
    case "late_evidence":
      return { what: `${entry.tool}: attempt ${entry.attempt} ended as ${entry.outcome}, reported late`, side: "" };
    case "refusal":
      return {
        what: `${ASKED[entry.event] ?? entry.event} refused: ${entry.rule.replaceAll("_", " ")}`,
        side: `stays ${entry.status}`,
      };
  }
}

/** `queued → running`; nothing where the status stayed. */
function moved({ from, to }: { readonly from: string | null; readonly to: string }): string {
  return from === to ? "" : `${from ?? "new"} → ${to}`;
}

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** A text with its instants as this machine's time of day, and with the date where that is another one. */
export function localTimes(text: string, now: Date): string {
  return text.replaceAll(INSTANT, (instant) => {
    const at = new Date(instant);
    return at.toDateString() === now.toDateString()
      ? timeOfDay(at)
      : `${at.toDateString().slice(4, 10)} ${timeOfDay(at)}`;
  });
}

/** `14:10:26`, in this machine's time zone. */
export function timeOfDay(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** A call's arguments in one line. */
export function inWords(args: unknown): string {
  if (typeof args !== "object" || args === null) return JSON.stringify(args);
  const fields = Object.entries(args).map(
    ([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return fields.join(", ");
}

/** Minor units as people write money: `EUR 189.00`. */
export function money(minor: number, currency: string): string {
  return `${currency.toUpperCase()} ${(minor / 100).toFixed(2)}`;
}

const EVENTS: Readonly<Record<string, string>> = {
  Submitted: "asks",
  Claimed: "takes the run up",
  Held: "puts the run on hold",
  Released: "gives the run back",
  EffectUnknown: "cannot know whether the call acted",
  EffectSettled: "settles the open attempt",
  Ended: "ends the run",
  OwnerGone: "finds the owner gone",
  Recovered: "recovers the run",
  FactArrived: "brings what was waited for",
};

const DECIDES: Readonly<Record<Extract<TimelineEntry, { kind: "decision" }>["decision"], string>> = {
  approve: "approves",
  approve_with_edits: "changes and approves",
  reject: "rejects",
  reject_and_abort: "stops the run, and rejects",
  respond: "answers instead of",
  skip: "skips",
  escalate: "passes on",
};

const ASKED: Readonly<Record<string, string>> = {
  FactArrived: "decision",
  CancelRequested: "cancel",
};
