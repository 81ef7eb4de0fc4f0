import type { Call } from "./step.ts";

/**
 * Whether nothing can ever refer to a call but the steps of its run: it is then a part of the step that asked for it. An
 * effect has attempts, which may be late, looked up and reported about; a call of child runs has children; a timer is set;
 * what needs an approval has requests, which may be edited. A read has none of them, whether it is allowed or was refused at
 * once: a rule that forbids it later writes its result, and no rule asks for it later. What it is is frozen with it.
 */
export function isPartOfReply({ effect, verdict }: Pick<Call, "effect" | "verdict">): boolean {
  return effect.kind === "read" && verdict.kind !== "needs_approval";
}
