import { isTerminal } from "@holdpoint/core";
import { type ActResult, act, type Judged } from "./act.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { readTask, type SeenTask, type TaskClaim } from "./find-task.ts";
import { newId } from "./ids.ts";
import type { Move } from "./move.ts";
import type { Run } from "./run.ts";

/** Who wants to take a task in hands. */
export interface TaskStart {
  readonly runId: string;
  /** Who asks, by name. */
  readonly startedBy: string;
  /** Who does it, in words for people. */
  readonly executor: string;
  /** The hash of the token that is given to whoever has it from now on. */
  readonly tokenHash: string;
  /** The hash of the key that makes the same request again no other start; null: each is one of its own. */
  readonly startKey: string | null;
}

/** The same, by a token that was given out in advance. */
export interface TokenStart {
  readonly runId: string;
  readonly executor: string;
  readonly tokenHash: string;
}

export type TaskStarted =
  /** `repeated`: it was started by the same request before. With another token, if the request brings one. */
  { readonly result: "started"; readonly run: Run; readonly repeated: boolean } | { readonly result: "unknown_token" };

/** A task is taken in hands by an ordinary claim, with a new epoch: of two that want it at once, one gets it. */
export async function startTask(store: Store, start: TaskStart): Promise<ActResult<TaskStarted>> {
  const { runId, startedBy, startKey, tokenHash } = start;
  const result = await act<SeenTask, TaskStarted>(store, requestOf(start, startedBy), ({ run, current, ...seen }) => {
    const isOurs = current !== null && run.state.owner === current.workerId && current.issuedBy === startedBy;
    if (isOurs && startKey !== null && current.startKey === startKey) {
      return { answer: { result: "started", run, repeated: true } };
    }
    return claimOf({ run, current, ...seen }, start);
  });
  if (result.result === "accepted") return { result: "started", run: result.run, repeated: false };
  if (result.result !== "started") return result;
  // Whoever repeats it has not got the answer, or not kept it: the token that nobody knows is replaced.
  const { epoch } = result.run;
  const replaced = await execute(store, REPLACE, [store.tenantId, runId, epoch, startKey, tokenHash]);
  return replaced.length > 0 ? result : { result: "refused", rule: "busy", event: "Claimed", run: result.run };
}

/** Starts a task by the token for it; the same token again finds it started. */
export async function startByToken(store: Store, start: TokenStart): Promise<ActResult<TaskStarted>> {
  const result = await act<SeenTask, TaskStarted>(store, requestOf(start, "token"), (seen) => {
    const { run, own } = seen;
    if (own === null) return { answer: { result: "unknown_token" } };
    if (own.workerId === null && own.epoch === run.epoch + 1) {
      return claimOf(seen, { ...start, startedBy: own.issuedBy, startKey: null });
    }
    if (isInHands(run, own)) return { answer: { result: "started", run, repeated: true } };
    return { refuse: isTerminal(run.state.status) ? "run_ended" : "task_token_stale" };
  });
  return result.result === "accepted" ? { result: "started", run: result.run, repeated: false } : result;
}

/** Whether the one who made this claim has the task in hands. */
function isInHands(run: Run, claim: TaskClaim): boolean {
  return claim.workerId !== null && claim.epoch === run.epoch && run.state.owner === claim.workerId;
}

/** The move by which somebody takes a task in hands, and what comes before it. */
export function takingMove(
  { run, terms }: Pick<SeenTask, "run" | "terms">,
  { before = [], ...claim }: Omit<TaskStart, "runId"> & { readonly before?: Move["events"] },
): Move {
  const { heartbeatMs, graceMs } = terms;
  const workerId = newId();
  const begin = { ...claim, workerId, agents: [run.agent], heartbeatMs, graceMs };
  return {
    run,
    events: [...before, { type: "Claimed", owner: workerId }],
    actor: { kind: "worker", id: workerId },
    reason: `started by ${claim.startedBy}`,
    writes: { task: { begin }, progressMs: heartbeatMs + graceMs },
  };
}

function requestOf({ runId, tokenHash }: TokenStart, id: string) {
  return {
    runId,
    event: "Claimed",
    actor: { kind: "worker", id },
    read: (store: Store) => readTask(store, runId, tokenHash),
  } as const;
}

function claimOf(seen: SeenTask, start: TaskStart): Judged<TaskStarted> {
  const { status, owner } = seen.run.state;
  if (status === "queued") {
    const { startedBy, executor, tokenHash, startKey } = start;
    return takingMove(seen, { startedBy, executor, tokenHash, startKey });
  }
  if (isTerminal(status)) return { refuse: "run_ended" };
  return { refuse: owner === null ? "task_not_queued" : "task_taken" };
}

const REPLACE = statement(
  "replace_task_token",
  `update holdpoint.tasks t set token_hash = $5, issued_at = holdpoint.clock()
   where t.tenant_id = $1::uuid and t.run_id = $2::uuid and t.epoch = $3::int and t.start_key = $4 and t.report is null
   returning t.epoch`,
);
