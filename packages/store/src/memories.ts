import { storableText } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { milliseconds } from "./run.ts";

/** What is known of somebody beyond one conversation, until it expires. */
export interface Memory {
  readonly id: string;
  /** Whose runs are told it: those that this person asks for. */
  readonly subject: string;
  readonly key: string;
  readonly value: string;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly expiresAtMs: number;
}

const TRIES = 20;

/**
 * Keeps a fact for the runs that are submitted from now on, in the place of the one that the key named before. Runs that
 * there are already keep what they have been told.
 */
export async function putMemory(
  store: Store,
  {
    subject,
    key,
    value,
    validForMs,
    by,
  }: {
    readonly subject: string;
    readonly key: string;
    readonly value: string;
    readonly validForMs: number;
    readonly by: string;
  },
): Promise<Memory> {
  for (let tries = 1; ; tries += 1) {
    try {
      const values = [store.tenantId, newId(), subject, storableText(key), storableText(value), validForMs, by];
      const [row] = await execute<{ memory: MemoryJson }>(store, PUT, values);
      if (row === undefined) throw new Error("The memory's row did not come back from its insert");
      return memoryOf(row.memory);
    } catch (error) {
      // Somebody else has kept another value under the key meanwhile; this one is the later.
      if (constraintOf(error) !== "memories_key" || tries >= TRIES) throw error;
    }
  }
}

/** Tells a fact to no run any more that is submitted from now on; false if it was so before, or there is none. */
export async function deleteMemory(
  store: Store,
  { memoryId, by }: { readonly memoryId: string; readonly by: string },
): Promise<boolean> {
  return (await execute(store, DELETE, [store.tenantId, memoryId, by])).length > 0;
}

/** A fact that is kept, or null; one that has expired is not. */
export async function findMemory(store: Store, memoryId: string): Promise<Memory | null> {
  const [row] = await execute<{ memory: MemoryJson }>(store, FIND, [store.tenantId, memoryId]);
  return row === undefined ? null : memoryOf(row.memory);
}

type MemoryJson = {
  readonly id: string;
  readonly subject: string;
  readonly key: string;
  readonly value: string;
  readonly created_at: string;
  readonly created_by: string;
  readonly expires_at: string;
};

function memoryOf(row: MemoryJson): Memory {
  return {
    id: row.id,
    subject: row.subject,
    key: row.key,
    value: row.value,
    createdAtMs: milliseconds(row.created_at),
    createdBy: row.created_by,
    expiresAtMs: milliseconds(row.expires_at),
  };
}

// Reads the rows replaced so that it comes after them, and after the wait for them: its instant is its own.
const PUT = statement(
  "put_memory",
  `with replaced as (
     update holdpoint.memories m set deleted_at = holdpoint.clock(), deleted_by = $7
     where m.tenant_id = $1::uuid and m.subject = $3 and m.key = $4 and m.deleted_at is null
     returning m.deleted_at
   ),
   at as materialized (select coalesce((select max(deleted_at) from replaced), holdpoint.clock()) as at),
   kept as (
     insert into holdpoint.memories (tenant_id, id, subject, key, value, created_at, created_by, expires_at)
     select $1::uuid, $2::uuid, $3, $4, $5, at.at, $7, at.at + $6::float8 * interval '1 millisecond' from at
     returning *
   )
   select to_jsonb(k) as memory from kept k`,
);

const DELETE = statement(
  "delete_memory",
  `update holdpoint.memories m set deleted_at = holdpoint.clock(), deleted_by = $3
   where m.tenant_id = $1::uuid and m.id = $2::uuid and m.deleted_at is null
   returning 1`,
);

const FIND = statement(
  "find_memory",
  `select to_jsonb(m) as memory from holdpoint.memories m
   where m.tenant_id = $1::uuid and m.id = $2::uuid and m.deleted_at is null and m.expires_at > holdpoint.now()`,
);
