import type { DecisionRule, EventType, Rule } from "@holdpoint/core";
import type { Store } from "./db.ts";
import { findRow } from "./find-row.ts";
import type { Move } from "./move.ts";
import { recordRefusal } from "./refusals.ts";
import type { Run } from "./run.ts";
import { transitionOne } from "./transition.ts";

/** Rules that only the facts of a hold, an approval or a call can break; the table's rules come from core. */
export type ActRule =
  | Rule
  | DecisionRule
  | "edit_denied"
  | "hold_is_over"
  | "not_a_workflow"
  | "deadline_passed"
  | "attempt_not_named"
  | "nobody_owns_it"
  | "task_taken"
  | "task_not_queued"
  | "task_not_started"
  | "task_token_stale"
  | "stop_not_asked"
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

interface Asked {
  readonly runId: string;
  readonly event: EventType;
  readonly actor: Move["actor"];
}

/** What is asked of a run, by whom. */
export interface Request<Seen extends { readonly run: Run }> extends Asked {
  /** Reads what the judgement rests on; null if there is no such run. */
  readonly read: (store: Store, runId: string) => Promise<Seen | null>;
  /** What was read just now, to find the run: judged first. */
  readonly seen?: Seen;
}

/** Reads a run's row alone: enough for what no history has to be known for. */
export async function readRow(store: Store, runId: string): Promise<{ readonly run: Run } | null> {
  const run = await findRow(store, runId);
  return run === null ? null : { run };
}

/**
 * Carries out what somebody outside asks of a run: reads its rows, judges, moves; again if the rows have changed
 * meanwhile, since the run's version is not that person's business. The final refusal is stored.
 */
export async function act<Seen extends { readonly run: Run }, Extra = never>(
  store: Store,
  request: Request<Seen>,
  judge: (seen: Seen) => Judged<Extra>,
): Promise<ActResult<Extra>> {
  let last: Run | null = null;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const known = tries === 0 ? request.seen : undefined;
    const seen = known ?? (await request.read(store, request.runId));
    if (seen === null) return { result: "not_found" };
    last = seen.run;
    const judged = judge(seen);
    if ("answer" in judged) return judged.answer;
    if ("refuse" in judged) return refuse(store, request, { run: last, rule: judged.refuse });
    const settled = await attempt(store, request, judged);
    if (settled !== null) return settled;
  }
  return last === null ? { result: "not_found" } : refuse(store, request, { run: last, rule: "busy" });
}

/** Tries one move; null when the rows have changed since they were read. */
async function attempt(store: Store, request: Asked, move: Move): Promise<ActResult | null> {
  const moved = await transitionOne(store, move);
  switch (moved.result) {
    case "accepted":
    case "ignored":
      return moved;
    case "rejected":
      return refuse(store, request, { run: moved.run, rule: moved.rule });
    case "notFound":
      return { result: "not_found" };
    case "conflict": {
      // Nothing has changed and still no row moved: the moment until which this was allowed has passed.
      const late = move.notAfterMs !== undefined && moved.current.version === move.run.version;
      return late ? refuse(store, request, { run: moved.current, rule: "deadline_passed" }) : null;
    }
  }
}

async function refuse(
  store: Store,
  { runId, event, actor }: Asked,
  { run, rule }: { readonly run: Run; readonly rule: ActRule },
): Promise<Refused> {
  await recordRefusal(store, { runId, event, rule, status: run.state.status, actor });
  return { result: "refused", rule, event, run };
}

type Refused = Extract<ActResult, { result: "refused" }>;
