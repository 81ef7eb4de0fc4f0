import { Client, DatabaseError, escapeIdentifier } from "pg";

const NO_SUCH_DATABASE = "3D000";
/** Somebody else made it at the same moment: found before, or when the row was written. */
const MADE_MEANWHILE: readonly (string | undefined)[] = ["42P04", "23505"];
/** Every server has it, for statements about databases. */
const MAINTENANCE = "/postgres";

/**
 * Makes the database of this address where it is missing. Safe when several processes start at once.
 *
 * @throws {Error} the server cannot be reached, or the user may not create databases.
 */
export async function createDatabase(url: string): Promise<{ readonly created: boolean }> {
  if (await exists(url)) return { created: false };
  const target = new URL(url);
  const name = decodeURIComponent(target.pathname.slice(1));
  target.pathname = MAINTENANCE;
  const client = new Client({ connectionString: target.href, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    // Nobody can be connected to template0, which would be in the way.
    await client.query(`create database ${escapeIdentifier(name)} template template0`);
    return { created: true };
  } catch (error) {
    if (error instanceof DatabaseError && MADE_MEANWHILE.includes(error.code)) return { created: false };
    throw error;
  } finally {
    await client.end();
  }
}

async function exists(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  try {
    await client.connect();
    return true;
  } catch (error) {
    if (error instanceof DatabaseError && error.code === NO_SUCH_DATABASE) return false;
    throw error;
  } finally {
    await client.end();
  }
}
