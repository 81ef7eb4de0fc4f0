import { type Actor, presentHold } from "@holdpoint/core";
import { type ActResult, act, readRow } from "./act.ts";
import type { Store } from "./db.ts";
import { newId } from "./ids.ts";

/** Something that a person says to a run. */
export interface SaidFact {
  readonly runId: string;
  readonly kind: "message" | "answer";
  readonly text: string;
  readonly actor: Actor;
  /** The hold that an answer is meant for, by the transition that made it. Without it the answer is kept for the next. */
  readonly holdSeq?: number;
}

/**
 * Stores what a person said and passes it to the run, in one statement, whatever its status. A run that asked goes on;
 * any other keeps it until it reads. A second answer to one hold is refused.
 */
export function recordFact(store: Store, fact: SaidFact): Promise<ActResult> {
  const { runId, kind, text, actor, holdSeq } = fact;
  return act(store, { runId, event: "FactArrived", actor, read: readRow }, ({ run }) => {
    if (kind === "answer" && holdSeq !== undefined && run.holdSeq !== holdSeq) return { refuse: "hold_is_over" };
    return {
      run,
      events: [{ type: "FactArrived", fact: kind, completesHold: presentHold(run.state)?.kind === "input" }],
      actor,
      writes: {
        facts: [{ id: newId(), body: { kind: "message", from: actor.id, text } }],
        messages: [{ role: "user", author: actor.id, text }],
      },
    };
  });
}
