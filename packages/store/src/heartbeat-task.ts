import { type Actor, isTerminal, reduce } from "@holdpoint/core";
import type { ActRule } from "./act.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { readTask, type SeenTask, type TaskClaim } from "./find-task.ts";
import { recordRefusal } from "./refusals.ts";
import type { Run } from "./run.ts";
import { takingMove } from "./start-task.ts";
import type { TaskProgress } from "./task-writes.ts";
import { transitionOne } from "./transition.ts";

export type HeartbeatResult =
  | {
      readonly result: "renewed";
      /** Somebody has asked the task to stop: its executor says so once it has. */
      readonly stop: boolean;
      readonly pause: boolean;
      /** By when it has to be heard of again, in milliseconds since the epoch. */
      readonly leaseUntilMs: number;
      readonly status: Run["state"]["status"];
    }
  | { readonly result: "refused"; readonly rule: ActRule; readonly event: "Recovered"; readonly run: Run }
  | { readonly result: "unknown_token" }
  | { readonly result: "not_found" };

/** Who is heard of. */
export interface Heartbeat {
  readonly runId: string;
  readonly tokenHash: string;
  /** Null: as it was. */
  readonly progress: TaskProgress | null;
}

const TRIES = 5;

/**
 * A sign of life of whoever has a task in hands. Of a renewal and a sweep that declares it gone, the first counts: both
 * stand on the executor's row. Where the task was lost meanwhile and nobody else has it, the sign of life is the evidence
 * that was missing: its executor has it again, under a new epoch.
 */
export async function heartbeatTask(store: Store, heartbeat: Heartbeat): Promise<HeartbeatResult> {
  for (let tries = 0; ; tries += 1) {
    const renewed = await renew(store, heartbeat);
    if (renewed !== null) return renewed;
    const seen = await readTask(store, heartbeat.runId, heartbeat.tokenHash);
    if (seen === null) return { result: "not_found" };
    if (seen.own === null) return { result: "unknown_token" };
    const rule = refusalOf(seen, seen.own);
    if (rule === null && tries < TRIES) await resumeTask(store, seen, seen.own);
    else return refuse(store, { run: seen.run, own: seen.own }, rule ?? "busy");
  }
}

/** Gives a lost task back to the executor that was lost with it. What comes of it, the next look at the row says. */
export async function resumeTask(store: Store, seen: SeenTask, own: TaskClaim): Promise<void> {
  const { run } = seen;
  // Declared gone, and not lost yet: the sweep that does the one does the other, and this is tried again.
  if (run.state.status !== "lost") return;
  const recovered = { type: "Recovered" } as const;
  const actor = actorOf(own);
  const next = reduce(run.state, recovered, actor);
  const isFree = "next" in next && next.next.status === "queued";
  const { tokenHash, executor, issuedBy: startedBy, startKey } = own;
  const move = isFree
    ? takingMove(seen, { before: [recovered], tokenHash, executor: executor ?? startedBy, startedBy, startKey })
    : { run, events: [recovered], actor };
  await transitionOne(store, { ...move, reason: "heard_of_again" });
}

/** Why whoever made this claim does not have the task in hands and can't have it back; null if that is not so. */
export function refusalOf({ run }: SeenTask, own: TaskClaim): ActRule | null {
  if (own.epoch !== run.epoch) return own.workerId === null ? "task_not_started" : "task_token_stale";
  if (isTerminal(run.state.status)) return "run_ended";
  return run.state.owner === own.workerId || run.state.status === "lost" ? null : "not_owned";
}

/** An executor by the name that the history has for it. */
export function actorOf({ workerId, issuedBy }: TaskClaim): Actor {
  return { kind: "worker", id: workerId ?? issuedBy };
}

async function renew(store: Store, { runId, tokenHash, progress }: Heartbeat): Promise<HeartbeatResult | null> {
  const [row] = await execute<RenewedRow>(store, RENEW, [
    store.tenantId,
    runId,
    tokenHash,
    progress === null ? null : JSON.stringify(progress),
  ]);
  if (row === undefined) return null;
  const { lease_until, ...rest } = row;
  return { result: "renewed", ...rest, leaseUntilMs: lease_until.getTime() };
}

type RenewedRow = { stop: boolean; pause: boolean; lease_until: Date; status: Run["state"]["status"] };

async function refuse(
  store: Store,
  { run, own }: { readonly run: Run; readonly own: TaskClaim },
  rule: ActRule,
): Promise<HeartbeatResult> {
  const event = "Recovered";
  // An executor that goes on and on is told each time; one entry an hour says it to everybody else.
  await recordRefusal(store, {
    runId: run.id,
    event,
    rule,
    status: run.state.status,
    actor: actorOf(own),
    onceInMs: HOUR_MS,
  });
  return { result: "refused", rule, event, run };
}

const HOUR_MS = 3_600_000;
const MS = "* interval '1 millisecond'";

const RENEW = statement(
  "heartbeat_task",
  `with owned as materialized (
     select r.id, r.epoch, t.worker_id, t.heartbeat_ms, t.grace_ms
     from holdpoint.runs r join holdpoint.tasks t on t.run_id = r.id and t.epoch = r.epoch
     where r.tenant_id = $1::uuid and r.id = $2::uuid and t.token_hash = $3 and r.owner = t.worker_id
     for update of r
   ),
   renewed as (
     update holdpoint.workers w set lease_until = holdpoint.clock() + o.heartbeat_ms ${MS}
     from owned o where w.id = o.worker_id and w.gone_at is null
     returning o.*, w.lease_until
   ),
   moved as (
     -- One that is heard of kills nobody: what was lost before does not count any more.
     update holdpoint.runs r set progress_due_at = n.lease_until + n.grace_ms ${MS}, takeovers = 0,
       updated_at = greatest(holdpoint.clock(), r.updated_at)
     from renewed n where r.id = n.id
     returning r.status, r.cancel_requested_at is not null as stop, r.pause_requested_at is not null as pause, n.lease_until
   ),
   noted as (
     update holdpoint.tasks t set last_heartbeat_at = n.lease_until - n.heartbeat_ms ${MS},
       progress = coalesce($4::jsonb, t.progress)
     from renewed n where t.run_id = n.id and t.epoch = n.epoch
   )
   select status, stop, pause, lease_until from moved`,
);
