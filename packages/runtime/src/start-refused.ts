import type { StartRefusal } from "@holdpoint/store";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";

/** A stop of an ancestor reaches everything below it within a sweep or two, in milliseconds. */
const CASCADE_MS = 1_000;

/**
 * A start was refused: for a stop, a pause, a changed policy or a lapsed approval of its own, which the rows tell; or since a
 * run above it was asked to stop, and then the run is given back until its own request comes.
 */
export function startRefused({ run }: Act, refusal: StartRefusal | null): Promise<Stored> {
  if (refusal !== "ancestor_stopped") return run.reload();
  return run.move([{ type: "Released", retryAt: { inMs: CASCADE_MS } }], {}, "ancestor_stopped");
}
