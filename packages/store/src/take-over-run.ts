import {
  type Actor,
  approvalFor,
  type EffectClass,
  effectClass,
  type Foreseen,
  foreseeLoss,
  type OpenCall,
} from "@holdpoint/core";
import { type ActResult, act } from "./act.ts";
import type { Store } from "./db.ts";
import { type LoadedRun, loadRun } from "./load-run.ts";
import type { Run } from "./run.ts";

/** An attempt without a known outcome, and what the next owner of its run does about it. */
export interface OpenEffect {
  readonly attemptId: string;
  readonly callId: string;
  readonly tool: string;
  readonly number: number;
  readonly effectClass: EffectClass;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  /** Its own time is over: nobody waits for it any more. */
  readonly overdue: boolean;
  /** How it is settled, in words. */
  readonly settledBy: string;
}

/** What would become of a run if its owner were gone now. */
export interface LossForecast {
  readonly run: Run;
  readonly foreseen: Foreseen;
  readonly open: readonly OpenEffect[];
}

/** Foretells what becomes of a run if its owner is gone at this moment; changes nothing. Null: there is no such run. */
export async function forecastLoss(
  store: Store,
  runId: string,
  how: Parameters<typeof foreseeLoss>[2],
): Promise<LossForecast | null> {
  const loaded = await loadRun(store, runId);
  return loaded === null ? null : forecastOf(loaded, how);
}

/**
 * Takes a run from whoever has it. Of what our workers do, nothing can be done twice by it:
 *
 * - What the worker has already begun is an attempt, committed before anything was sent. The row counts it, and this move
 *   is pinned by the version and the step at which that was read: an intent that is committed meanwhile makes it try anew.
 * - With an attempt open the run goes to `outcome_unknown`, never to `queued`: the next owner may only find out, and a
 *   look-up's "it did not happen" counts only once the bytes of the first call can no longer arrive.
 * - The old owner can begin nothing more: each of its commits names the epoch of its claim, which is over. What it still
 *   brings home is late evidence.
 *
 * An executor of a task acts outside as it likes, and goes on until it hears of it: its work may be done twice, which
 * whoever takes it over is told before.
 */
export function takeOverRun(
  store: Store,
  { runId, actor, reason }: { readonly runId: string; readonly actor: Actor; readonly reason: string },
): Promise<ActResult> {
  return act(store, { runId, event: "OwnerGone", actor, read: loadRun }, ({ run }) =>
    run.state.owner === null
      ? { refuse: "nobody_owns_it" }
      : {
          run,
          events: [{ type: "OwnerGone", reason: "taken_over" }, { type: "Recovered" }],
          actor,
          reason: `taken_over: ${reason}`,
        },
  );
}

function forecastOf(loaded: LoadedRun, how: Parameters<typeof foreseeLoss>[2]): LossForecast {
  const open = loaded.openAttempts.flatMap((attempt) => {
    const call = loaded.calls.find(({ id }) => id === attempt.callId);
    return call === undefined ? [] : [{ call, attempt, nowMs: loaded.nowMs, mayStart: mayStart(loaded, call) }];
  });
  const foreseen = foreseeLoss(loaded.run.state, open, how);
  return { run: loaded.run, foreseen, open: open.map((each) => effectOf(each, foreseen)) };
}

/** Whether a call may be sent (again) now: the same that a worker asks before it starts one. */
function mayStart(loaded: LoadedRun, call: OpenCall["call"]): boolean {
  const { cancelRequestedAt, pauseRequestedAt } = loaded.run.state;
  return cancelRequestedAt === null && pauseRequestedAt === null && approvalFor(call, loaded) !== undefined;
}

function effectOf({ call, attempt, nowMs }: OpenCall, { calls }: Foreseen): OpenEffect {
  return {
    attemptId: attempt.id,
    callId: call.id,
    tool: call.tool,
    number: attempt.number,
    effectClass: effectClass(call.effect),
    startedAtMs: attempt.startedAtMs,
    deadlineAtMs: attempt.deadlineAtMs,
    overdue: attempt.deadlineAtMs < nowMs,
    settledBy: calls.find(({ attemptId }) => attemptId === attempt.id)?.text ?? "",
  };
}
