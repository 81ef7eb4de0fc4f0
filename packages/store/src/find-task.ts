import type { TaskTerms } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

/** One time that somebody has, or had, a task in hands; or a token for it that was given out in advance. */
export interface TaskClaim {
  /** The epoch of the claim. */
  readonly epoch: number;
  readonly tokenHash: string;
  readonly issuedBy: string;
  /** Null while nobody has started it. */
  readonly workerId: string | null;
  readonly executor: string | null;
  readonly startKey: string | null;
  /** The hash of what its executor said last. */
  readonly reportHash: string | null;
}

/** A task, with what judges whoever speaks for it. */
export interface SeenTask {
  readonly run: Run;
  readonly terms: TaskTerms;
  /** The claim that the token is for; null: the token is for none of this task's. */
  readonly own: TaskClaim | null;
  /** The claim of the run's present epoch. */
  readonly current: TaskClaim | null;
  /** Failures since an operator has decided last. */
  readonly failures: number;
}

/** Reads a task for whoever has a token with this hash; null if there is no such task. */
export async function readTask(store: Store, runId: string, tokenHash: string): Promise<SeenTask | null> {
  const [row] = await execute<SeenRow>(store, READ, [store.tenantId, runId, tokenHash]);
  if (row === undefined) return null;
  const { run, terms, own, current, failures } = row;
  return {
    run: runOf(run),
    terms,
    own: own === null ? null : claimOf(own),
    current: current === null ? null : claimOf(current),
    failures,
  };
}

interface ClaimJson {
  readonly epoch: number;
  readonly token_hash: string;
  readonly issued_by: string;
  readonly worker_id: string | null;
  readonly executor: string | null;
  readonly start_key: string | null;
  readonly report_hash: string | null;
}

interface SeenRow {
  readonly run: RunJson;
  readonly terms: TaskTerms;
  readonly own: ClaimJson | null;
  readonly current: ClaimJson | null;
  readonly failures: number;
}

function claimOf(row: ClaimJson): TaskClaim {
  return {
    epoch: row.epoch,
    tokenHash: row.token_hash,
    issuedBy: row.issued_by,
    workerId: row.worker_id,
    executor: row.executor,
    startKey: row.start_key,
    reportHash: row.report_hash,
  };
}

const READ = statement(
  "read_task",
  `select to_jsonb(r) as run, g.task as terms,
     (select to_jsonb(t) from holdpoint.tasks t where t.run_id = r.id and t.token_hash = $3
      order by t.epoch desc limit 1) as own,
     (select to_jsonb(t) from holdpoint.tasks t where t.run_id = r.id and t.epoch = r.epoch) as current,
     (select count(*)::int from holdpoint.tasks t where t.run_id = r.id and t.report->>'kind' = 'fail' and t.epoch > coalesce(
        (select max(d.epoch) from holdpoint.transitions d where d.run_id = r.id and d.event = 'OperatorDecided'), 0)
     ) as failures
   from holdpoint.runs r
   join holdpoint.agents g on g.tenant_id = r.tenant_id and g.name = r.agent_name and g.version = r.agent_version
   where r.tenant_id = $1::uuid and r.id = $2::uuid and r.is_task and g.task is not null`,
);
