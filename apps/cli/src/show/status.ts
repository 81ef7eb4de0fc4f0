import type { Run } from "@holdpoint/protocol";
import type { Colours } from "../colours.ts";
import type { Output } from "../context.ts";

/** A run's status and its colour. `completed` alone is a success; anything less says so. */
export function statusCell({ status, outcome }: Pick<Run, "status" | "outcome">, { colours }: Output) {
  const text = outcome === null || outcome.kind === "succeeded" ? status : `${status}: ${outcome.kind}`;
  return { text, paint: paintOf(text, colours) };
}

function paintOf(text: string, { good, bad, waiting }: Colours): (text: string) => string {
  switch (text) {
    case "completed":
      return good;
    case "failed":
    case "lost":
    case "outcome_unknown":
      return bad;
    case "queued":
    case "running":
    case "retrying":
    case "cancelling":
    case "cancelled":
      return (plain) => plain;
    default:
      return waiting;
  }
}
