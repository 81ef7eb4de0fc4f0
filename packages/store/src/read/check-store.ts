import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Store, statement } from "../db.ts";
import { execute } from "../execute.ts";

/** `migration_missing`: the schema is older than this program (or absent). */
export type StoreCheck = "ok" | "migration_missing";

/**
 * Whether the store really takes writes and gives them back: one row (the tenant's) is written anew with what it holds
 * and returned by the same statement, so that a standby, a full disk and a missing or older schema are all seen.
 *
 * @throws when the database cannot be reached or refuses the write.
 */
export async function checkStore(store: Store): Promise<StoreCheck> {
  try {
    const [row] = await execute<{ migrated_to: string | null }>(store, WRITE, [store.tenantId]);
    return row?.migrated_to != null && Number(row.migrated_to) >= newestMigration() ? "ok" : "migration_missing";
  } catch (error) {
    if (NO_SUCH_OBJECT.has(codeOf(error))) return "migration_missing";
    throw error;
  }
}

const JOURNAL = fileURLToPath(new URL("../../migrations/meta/_journal.json", import.meta.url));

/** The instant by which the migrator names the newest migration that this program knows. */
export function newestMigration(): number {
  // Written by the migration tool in this form.
  const { entries } = JSON.parse(readFileSync(JOURNAL, "utf8")) as { entries: readonly { when: number }[] };
  return Math.max(...entries.map(({ when }) => when));
}

/** A schema, a table or a function does not exist. */
const NO_SUCH_OBJECT: ReadonlySet<unknown> = new Set(["3F000", "42P01", "42883"]);

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : null;
}

const WRITE = statement(
  "check_store",
  `update holdpoint.tenants set created_at = created_at where id = $1::uuid
   returning (select max(created_at)::text from holdpoint.__drizzle_migrations) as migrated_to`,
);
