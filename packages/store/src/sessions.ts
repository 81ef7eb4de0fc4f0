import { storableText } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { newId } from "./ids.ts";

export interface Session {
  readonly id: string;
  readonly requester: string;
  readonly createdAtMs: number;
}

/** Opens a conversation for a requester. */
export async function createSession(store: Store, requester: string): Promise<Session> {
  const [row] = await execute<SessionRow>(store, CREATE, [store.tenantId, newId(), storableText(requester)]);
  if (row === undefined) throw new Error("The session's row did not come back from its insert");
  return sessionOf(row);
}

/** A session, or null if there is none with this id. */
export async function findSession(store: Store, sessionId: string): Promise<Session | null> {
  const [row] = await execute<SessionRow>(store, FIND, [store.tenantId, sessionId]);
  return row === undefined ? null : sessionOf(row);
}

type SessionRow = { id: string; requester: string; created_at: Date };

function sessionOf(row: SessionRow): Session {
  return { id: row.id, requester: row.requester, createdAtMs: row.created_at.getTime() };
}

const CREATE = statement(
  "create_session",
  `insert into holdpoint.sessions (tenant_id, id, requester) values ($1::uuid, $2::uuid, $3)
   returning id, requester, created_at`,
);

const FIND = statement(
  "find_session",
  "select id, requester, created_at from holdpoint.sessions where tenant_id = $1::uuid and id = $2::uuid",
);
