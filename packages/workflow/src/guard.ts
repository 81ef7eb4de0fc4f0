import { storableText } from "@holdpoint/core";
import type { HoldReason, WorkflowHold } from "./decision.ts";
import { LIMITS } from "./limits.ts";
import { messageOf } from "./read-output.ts";

/** Where a hold is; node null: the workflow's result. */
export interface Place {
  readonly node: string | null;
  readonly round: number;
  readonly item: number | null;
  /** The execution that is there; null: none. */
  readonly callId: string | null;
}

/** A wait for a person. */
export function holdAt(place: Place, reason: HoldReason, message: string): WorkflowHold {
  return { do: "hold", reason, ...place, message: shortened(message) };
}

/** What a function of a definition gives; a hold where it throws, since nobody else can mend it. */
export function guarded<Value>(place: Place, what: string, act: () => Value): { readonly value: Value } | WorkflowHold {
  try {
    return { value: act() };
  } catch (error) {
    return holdAt(place, "graph_error", `${what}: ${messageOf(error)}`);
  }
}

/** Text for people, of a size that they read and the database stores. */
export function shortened(text: string): string {
  const short = text.length > LIMITS.message ? `${text.slice(0, LIMITS.message - 1)}…` : text;
  return storableText(short);
}
