// What the readers of a run need to know of those that started it and of those that it has started.

import type { AgentRef, Status } from "@holdpoint/core";
import { eq, sql } from "drizzle-orm";
import type { AgentKind } from "../agents.ts";
import type { Store } from "../db.ts";
import { agents, calls, runs, steps } from "../schema.ts";
import { qualified, reader } from "./reader.ts";

/** A child that ended without achieving anything, and where and why it could not go on. */
export interface BlockedChild {
  readonly id: string;
  readonly agent: AgentRef;
  readonly step: string;
  readonly reason: string;
}

/** A run below one that is being stopped, which has not stopped yet. */
export interface UnstoppedRun {
  readonly id: string;
  readonly agent: AgentRef;
  readonly status: Status;
}

/** The child runs that a run waits for and that have not ended: the first of them, and how many there are. */
export interface AwaitedChildren {
  readonly first: string | null;
  readonly count: number;
}

/** How many are named. */
const NAMED = 10;

/** Who works on a run's agent's runs; an agent that is not registered any more was one of ours. */
export const AGENT_KIND = sql<AgentKind>`coalesce((
  select g.kind from ${agents} g where g.tenant_id = ${qualified(runs.tenantId)}
    and g.name = ${qualified(runs.agentName)} and g.version = ${qualified(runs.agentVersion)}), 'agent')`;

export const PARENT_TOOL = sql<string | null>`(
  select c.tool from ${calls} c where c.run_id = ${qualified(runs.parent)} and c.id = ${qualified(runs.parentCall)})`;

const BLOCKED = sql`jsonb_build_object('id', k.id, 'agent', jsonb_build_object('name', k.agent_name, 'version', k.agent_version),
  'step', k.outcome ->> 'step', 'reason', k.outcome ->> 'reason')`;

/** Of each place the latest try counts: an earlier one may have been blocked by what is there now. */
export const BLOCKED_BY = sql<readonly BlockedChild[]>`coalesce((
  select jsonb_agg(b.blocked order by b.ordinal) from (
    select k.parent_ordinal as ordinal, ${BLOCKED} as blocked from ${runs} k
    where ${qualified(runs.status)} = 'waiting_operator' and k.parent = ${qualified(runs.id)}
      and k.parent_call::text = ${qualified(runs.waitingFor)} ->> 'subject' and k.outcome ->> 'kind' = 'blocked'
      and not exists (select from ${runs} n where n.parent = k.parent and n.parent_call = k.parent_call
        and n.parent_ordinal = k.parent_ordinal and n.parent_try > k.parent_try)
    order by k.parent_ordinal limit ${sql.raw(String(NAMED))}) b), '[]')`;

/** Its hold names those that were live when it was made; since then some may have ended. */
export const AWAITED = sql<AwaitedChildren | null>`(case when ${qualified(runs.waitingFor)} ->> 'kind' = 'child' then (
  select jsonb_build_object('first', (array_agg(k.id order by k.parent_ordinal, k.id))[1], 'count', count(*))
  from ${runs} k where k.parent = ${qualified(runs.id)} and k.ended_at is null
    and coalesce(k.parent_call::text = ${qualified(runs.waitingFor)} ->> 'subject', true)) end)`;

const UNSTOPPED = sql`jsonb_build_object('id', d.id, 'status', d.status,
  'agent', jsonb_build_object('name', d.agent_name, 'version', d.agent_version))`;

export const NOT_STOPPED = sql<readonly UnstoppedRun[]>`coalesce((
  select jsonb_agg(u.unstopped order by u.id) from (
    select d.id, ${UNSTOPPED} as unstopped from ${runs} d
    where ${qualified(runs.status)} = 'cancelling' and d.parent is not null
      and d.ancestors[1] = coalesce(${qualified(runs.ancestors)}[1], ${qualified(runs.id)})
      and ${qualified(runs.id)} = any(d.ancestors) and d.ended_at is null
    order by d.id limit ${sql.raw(String(NAMED))}) u), '[]')`;

/** A node of a workflow that has been started and is not complete; `item` where it runs once for each of a list. */
export interface OpenNode {
  readonly node: string;
  readonly round: number;
  readonly item: number | null;
}

/** The most open nodes that are named. */
const OPEN_NODES = 100;

/** The nodes of a workflow's run that are open, by the order of their starts. */
export async function findOpenNodes(store: Store, runId: string): Promise<readonly OpenNode[]> {
  const rows = await reader(store)
    .select({ node: sql<OpenNode>`n.node` })
    .from(steps)
    .innerJoin(sql`lateral jsonb_array_elements(${steps.body} -> 'nodes') with ordinality as n(node, place)`, sql`true`)
    .where(
      sql`${eq(steps.tenantId, store.tenantId)} and ${eq(steps.runId, runId)} and ${eq(steps.kind, "nodes_started")}
        and n.node -> 'settled' = 'null'::jsonb and not exists (select from ${steps} e where e.run_id = ${qualified(steps.runId)}
          and e.kind = 'tool_result' and e.body ->> 'callId' = n.node ->> 'id')`,
    )
    .orderBy(steps.seq, sql`n.place`)
    .limit(OPEN_NODES);
  return rows.map(({ node: { node, round, item } }) => ({ node, round, item }));
}
