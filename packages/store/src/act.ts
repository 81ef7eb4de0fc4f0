import type { EventType, Rule } from "@holdpoint/core";
import type { Store } from "./db.ts";
import { type LoadedRun, loadRun } from "./load-run.ts";
import { recordRefusal } from "./refusals.ts";
import type { Run } from "./run.ts";
import { type Move, transitionOne } from "./transition.ts";

/** Rules that only the facts of a hold, an approval or a call can break; the table's rules come from core. */
export type ActRule =
  | Rule
  | "hold_is_over"
  | "not_an_approver"
  | "own_request"
  | "hash_mismatch"
  | "already_decided"
  | "approval_expired"
  | "approval_withdrawn"
  | "deadline_passed"
  | "attempt_not_named"
  | "busy";

/** What somebody outside is answered. */
export type ActResult<Extra = never> =
  | { readonly result: "accepted"; readonly run: Run }
  /** Nothing to do: a duplicate of what has taken effect before. */
  | { readonly result: "ignored"; readonly run: Run }
  /** Refused for good, and recorded as such. */
  | { readonly result: "refused"; readonly rule: ActRule; readonly event: EventType; readonly run: Run }
  | { readonly result: "not_found" }
  | Extra;

/** What a person's wish comes to on the rows as they are: a move, or a rule that forbids it. */
export type Judged<Extra = never> = Move | { readonly refuse: ActRule } | { readonly answer: Extra };

const TRIES = 20;

/**
 * Carries out what somebody outside asks of a run: reads its rows, judges, moves; again if the rows have changed
 * meanwhile, since the run's version is not that person's business. The final refusal is stored.
 */
export async function act<Extra = never>(
  store: Store,
  request: { readonly runId: string; readonly event: EventType; readonly actor: Move["actor"] },
  judge: (loaded: LoadedRun) => Judged<Extra> | Promise<Judged<Extra>>,
): Promise<ActResult<Extra>> {
  const { runId, event, actor } = request;
  const refuse = async (run: Run, rule: ActRule): Promise<ActResult<Extra>> => {
    await recordRefusal(store, { runId, event, rule, status: run.state.status, actor });
    return { result: "refused", rule, event, run };
  };
  let seen: Run | null = null;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const loaded = await loadRun(store, runId);
    if (loaded === null) return { result: "not_found" };
    seen = loaded.run;
    const judged = await judge(loaded);
    if ("answer" in judged) return judged.answer;
    if ("refuse" in judged) return refuse(seen, judged.refuse);
    const moved = await transitionOne(store, judged);
    if (moved.result === "accepted" || moved.result === "ignored") return moved;
    if (moved.result === "rejected") return refuse(moved.run, moved.rule);
    if (moved.result === "notFound") return { result: "not_found" };
    // Nothing has changed and still no row moved: the moment until which this was allowed has passed.
    const late = judged.notAfterMs !== undefined && moved.current.version === seen.version;
    if (late) return refuse(moved.current, "deadline_passed");
  }
  return seen === null ? { result: "not_found" } : refuse(seen, "busy");
}
