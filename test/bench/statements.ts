import type pg from "pg";

const MOST_STATEMENTS = 40;
const TEXT_LIMIT = 160;

export async function resetStatements(admin: pg.Client): Promise<void> {
  await admin.query("select pg_stat_statements_reset()");
}

/** What each statement of a database has cost since the last reset, as a table, the dearest first. */
export async function readStatements(admin: pg.Client, database: string): Promise<string> {
  const { rows } = await admin.query<StatementRow>(STATEMENTS, [database, MOST_STATEMENTS, TEXT_LIMIT]);
  const lines = rows.map(({ calls, rows: touched, ms, mean_ms, wal, text }) =>
    [calls, touched, ms, mean_ms, wal]
      .map((each) => each.padStart(10))
      .join("")
      .concat("  ", text),
  );
  const head = ["calls", "rows", "ms", "mean ms", "wal bytes"].map((each) => each.padStart(10)).join("");
  return `${head}  statement\n${lines.join("\n")}\n`;
}

interface StatementRow {
  readonly calls: string;
  readonly rows: string;
  readonly ms: string;
  readonly mean_ms: string;
  readonly wal: string;
  readonly text: string;
}

const STATEMENTS = `
select s.calls::text, s.rows::text, round(s.total_exec_time)::text as ms,
  round(s.mean_exec_time::numeric, 3)::text as mean_ms, s.wal_bytes::text as wal,
  left(regexp_replace(s.query, '\\s+', ' ', 'g'), $3) as text
from pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = $1
order by s.total_exec_time desc
limit $2`;
