import type { Pool, PoolClient } from "pg";

/** One execution of a write tool's body, successful or not. */
export type JournalRow = {
  readonly id: number;
  /** The operation id that the caller sent. */
  readonly key: string;
  readonly task: string;
  readonly tool: string;
  readonly argumentsSha256: string;
  readonly ok: boolean;
  readonly errorCode: string | null;
  readonly resultSha256: string;
  readonly result: string;
  /** ISO 8601. */
  readonly at: string;
};

type Db = Pool | PoolClient;
type StoredRow = {
  id: string;
  key: string;
  task: string;
  tool: string;
  arguments_sha256: string;
  ok: boolean;
  error_code: string | null;
  result_sha256: string;
  result: string;
  at: Date;
};

/** All executions under an operation id, the oldest first. */
export async function journalOfKey(db: Db, key: string): Promise<readonly JournalRow[]> {
  const { rows } = await db.query<StoredRow>("select * from journal where key = $1 order by id", [key]);
  return rows.map(journalRow);
}

/** All executions in a task, or in all tasks where none is named, the oldest first. */
export async function journalOfTask(db: Db, task: string | null): Promise<readonly JournalRow[]> {
  const { rows } = await db.query<StoredRow>("select * from journal where $1::text is null or task = $1 order by id", [
    task,
  ]);
  return rows.map(journalRow);
}

export async function appendToJournal(db: Db, row: Omit<JournalRow, "id" | "at">): Promise<void> {
  await db.query(
    `insert into journal (key, task, tool, arguments_sha256, ok, error_code, result_sha256, result)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [row.key, row.task, row.tool, row.argumentsSha256, row.ok, row.errorCode, row.resultSha256, row.result],
  );
}

function journalRow(stored: StoredRow): JournalRow {
  return {
    id: Number(stored.id),
    key: stored.key,
    task: stored.task,
    tool: stored.tool,
    argumentsSha256: stored.arguments_sha256,
    ok: stored.ok,
    errorCode: stored.error_code,
    resultSha256: stored.result_sha256,
    result: stored.result,
    at: stored.at.toISOString(),
  };
}
