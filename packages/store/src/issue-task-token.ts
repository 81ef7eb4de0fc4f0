import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { findRow } from "./find-row.ts";
import { recordRefusal } from "./refusals.ts";

export type TaskTokenIssued =
  /** `started`: whoever has the task in hands goes on with this token; otherwise it starts the task. */
  | { readonly result: "issued"; readonly started: boolean }
  | { readonly result: "run_ended"; readonly status: string }
  | { readonly result: "not_found" };

/**
 * Makes a token the one for a task: for whoever has it in hands or was lost with it, or, if nobody has, for whoever starts
 * it next. The one before it is worth nothing any more.
 */
export async function issueTaskToken(
  store: Store,
  { runId, tokenHash, issuedBy }: { readonly runId: string; readonly tokenHash: string; readonly issuedBy: string },
): Promise<TaskTokenIssued> {
  const [row] = await execute<{ started: boolean }>(store, ISSUE, [store.tenantId, runId, tokenHash, issuedBy]);
  if (row !== undefined) return { result: "issued", started: row.started };
  const run = await findRow(store, runId);
  if (run === null || !run.isTask) return { result: "not_found" };
  const { status } = run.state;
  const actor = { kind: "operator", id: issuedBy } as const;
  await recordRefusal(store, { runId, event: "Claimed", rule: "run_ended", status, actor });
  return { result: "run_ended", status };
}

const ISSUE = statement(
  "issue_task_token",
  `with task as materialized (
     select r.id, r.epoch + (r.owner is null and r.status <> 'lost')::int as epoch, g.task
     from holdpoint.runs r
     join holdpoint.agents g on g.tenant_id = r.tenant_id and g.name = r.agent_name and g.version = r.agent_version
     where r.tenant_id = $1::uuid and r.id = $2::uuid and r.is_task and r.ended_at is null and g.task is not null
     for update of r
   )
   insert into holdpoint.tasks as t (tenant_id, run_id, epoch, token_hash, issued_at, issued_by, heartbeat_ms, grace_ms)
   select $1::uuid, k.id, k.epoch, $3, holdpoint.clock(), $4, (k.task->>'heartbeatMs')::int, (k.task->>'graceMs')::int
   from task k
   on conflict (run_id, epoch) do update set token_hash = excluded.token_hash, issued_at = excluded.issued_at,
     issued_by = excluded.issued_by, start_key = null
   returning t.started_at is not null as started`,
);
