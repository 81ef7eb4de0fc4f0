import type { Pool, QueryConfig, QueryResult } from "pg";
import type { Reach } from "./fault-point.ts";

/** A pool with a point before each statement is sent and one when its answer has come, or it failed. */
export function faultyPool(pool: Pool, reach: Reach): Pool {
  const query = async (statement: string | QueryConfig, ...more: unknown[]): Promise<QueryResult> => {
    const config = readStatement(statement, more);
    const name = `statement:${nameOf(config)}`;
    await reach(`${name}:sent`, { kind: "statement", text: config.text, values: config.values ?? [] });
    return answerOf(pool, config, () => reach(`${name}:answered`));
  };
  return new Proxy(pool, { get: (target, key) => (key === "query" ? query : Reflect.get(target, key)) });
}

/** An answer that gets lost was on its way: the statement has taken effect, and its connection is closed. */
async function answerOf(pool: Pool, config: QueryConfig, onAnswer: () => Promise<void>): Promise<QueryResult> {
  const client = await pool.connect();
  // The statement reports the same error.
  const ignore = (): void => undefined;
  client.on("error", ignore);
  let isLost = true;
  try {
    const answer = client.query(config);
    await Promise.allSettled([answer]);
    await onAnswer();
    const result = await answer;
    isLost = false;
    return result;
  } finally {
    client.off("error", ignore);
    client.release(isLost);
  }
}

function readStatement(statement: string | QueryConfig, [values, callback]: readonly unknown[]): QueryConfig {
  if (typeof values === "function" || typeof callback === "function") {
    throw new TypeError(
      "A pool with fault points answers with promises only: query(statement, values) without callback",
    );
  }
  const config = typeof statement === "string" ? { text: statement } : statement;
  // The types of pg ask for an array here, and this is what was passed on as one.
  return values === undefined ? config : { ...config, values: values as unknown[] };
}

/** The verb of a statement of the store; of any other what it does first: "insert refund_desk.refunds". */
function nameOf({ name, text }: QueryConfig): string {
  if (name !== undefined) return name.replace(/^holdpoint_/, "").replace(/_[0-9a-f]{8}$/, "");
  const [verb = "statement"] = text.trim().split(/\s/);
  const table = /\b(?:from|into|update)\s+([a-z_.]+)/i.exec(text)?.[1];
  return [verb.toLowerCase(), ...(table === undefined ? [] : [table])].join(" ");
}
