import type { ApprovalState, DecidableRequest, DenyRule, PendingRequest, RecordedDecision } from "@holdpoint/core";
import type { RegisteredTool } from "./agents.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import type { ShownRequest } from "./move.ts";
import { milliseconds, type Run, type RunJson, runOf } from "./run.ts";

/** A request, its run, and all that a decision about it rests on, in one snapshot; the run's version pins it. */
export interface RequestSeen {
  readonly run: Run;
  readonly tool: string;
  readonly request: DecidableRequest;
  readonly shown: ShownRequest;
  /** The run's other pending requests. */
  readonly others: readonly PendingRequest[];
  /** The roles of whoever decides. */
  readonly roles: readonly string[];
  /** Everybody who has caused the run's calls: who asked for it, who submitted it, who has told it something since. */
  readonly causes: readonly string[];
  /** The tool as its agent has registered it; null if it has not. */
  readonly registered: RegisteredTool | null;
  readonly denials: readonly DenyRule[];
  readonly by: string;
  readonly nowMs: number;
}

type PendingRow = {
  id: string;
  call_id: string;
  terms: PendingRequest["terms"];
  level: number;
  extended: boolean;
  deadline: string;
};

type RequestRow = {
  run: RunJson;
  approval: PendingRow & {
    state: ApprovalState;
    tool: string;
    args_hash: string;
    excluded: readonly string[];
    request: ShownRequest;
  };
  others: readonly PendingRow[];
  decided: readonly RecordedDecision[];
  roles: readonly string[];
  said: readonly string[];
  tools: readonly RegisteredTool[] | null;
  denials: readonly DenyRule[];
  now: Date;
};

/** Reads a request for whoever decides it; null if there is none with this id. */
export async function readRequest(
  store: Store,
  { approvalId, by }: { readonly approvalId: string; readonly by: string },
): Promise<RequestSeen | null> {
  const [row] = await execute<RequestRow>(store, REQUEST, [store.tenantId, approvalId, by]);
  if (row === undefined) return null;
  const { state, tool, args_hash: argsHash, excluded, request: shown } = row.approval;
  const run = runOf(row.run);
  return {
    run,
    tool,
    shown,
    request: { ...pendingOf(row.approval), state, argsHash, excluded, requester: run.requester, decided: row.decided },
    others: row.others.map(pendingOf),
    roles: row.roles,
    causes: [...new Set([run.requester, run.submittedBy, ...row.said])],
    registered: row.tools?.find(({ name }) => name === tool) ?? null,
    denials: row.denials,
    by,
    nowMs: row.now.getTime(),
  };
}

function pendingOf({ id, call_id: callId, terms, level, extended, deadline }: PendingRow): PendingRequest {
  return { id, callId, terms, level, extended, deadlineMs: milliseconds(deadline) };
}

const REQUEST = statement(
  "approval_request",
  `select to_jsonb(a) as approval, to_jsonb(r) as run, holdpoint.clock() as now,
     (select coalesce(jsonb_agg(to_jsonb(o) - 'request' order by o.id), '[]') from holdpoint.approvals o
      where o.run_id = a.run_id and o.state = 'pending' and o.id <> a.id) as others,
     (select coalesce(jsonb_agg(jsonb_build_object('by', d.actor_id, 'kind', d.decision, 'level', d.level,
        'payload', d.payload) order by d.at, d.id), '[]')
      from holdpoint.decisions d where d.approval_id = a.id) as decided,
     array(select g.role from holdpoint.role_assignments g
       where g.tenant_id = a.tenant_id and g.user_id = $3 and g.revoked_at is null) as roles,
     array(select distinct s.body->>'from' from holdpoint.steps s
       where s.run_id = r.id and s.kind = 'message') as said,
     (select g.tools from holdpoint.agents g
      where g.tenant_id = a.tenant_id and g.name = r.agent_name and g.version = r.agent_version) as tools,
     (select coalesce(jsonb_agg(d.rule order by d.id), '[]') from holdpoint.deny_rules d
      where d.tenant_id = a.tenant_id and d.lifted_at is null) as denials
   from holdpoint.approvals a join holdpoint.runs r on r.id = a.run_id
   where a.tenant_id = $1::uuid and a.id = $2::uuid`,
);
