import type { Store } from "@holdpoint/store";

/** A node of a plan that was carried out. */
export interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Recheck Cond"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

/** A statement that was sent, as the server carries it out. */
export interface Carried {
  readonly text: string;
  readonly plan: PlanNode;
}

/**
 * What a verb sends, each statement with its plan: all of them, since they are taken on their way to the server. What the
 * look at a plan has written is taken back, and the statement is sent after it.
 */
export async function plansOf(store: Store, verb: (store: Store) => Promise<unknown>): Promise<readonly Carried[]> {
  const carried: Carried[] = [];
  await verb({ ...store, pool: watched(store.pool, carried), leasePool: watched(store.leasePool, carried) });
  return carried;
}

type Pool = Store["pool"];
type Sent = string | { readonly text: string; readonly values?: unknown[] };

function watched(pool: Pool, carried: Carried[]): Pool {
  const query = async (sent: Sent, given?: unknown[]) => {
    const { text, values = [] } = typeof sent === "string" ? { text: sent, values: given } : { values: given, ...sent };
    const client = await pool.connect();
    try {
      await client.query("begin");
      const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
      await client.query("rollback");
      carried.push({ text, plan: rows[0]["QUERY PLAN"][0].Plan });
      return await client.query(sent as never, given as never);
    } finally {
      client.release();
    }
  };
  return new Proxy(pool, { get: (target, key) => (key === "query" ? query : Reflect.get(target, key)) });
}

/** All nodes of a plan. */
export function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** How many rows a node has looked at, those included that it has passed over. */
export function rowsLookedAt(node: PlanNode): number {
  return (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"];
}

/** How many pages a plan has read. */
export function pagesRead({ plan }: Carried): number {
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}
