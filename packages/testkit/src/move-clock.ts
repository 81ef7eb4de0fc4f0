import { executeStatement } from "./template-database.ts";

/**
 * Moves the clock of a test's database by `ms` milliseconds from the real one, for every process that uses it: days
 * pass at once. 0 sets it right again.
 */
export function moveClock(url: string, ms: number): Promise<void> {
  const offset = `interval '${ms} milliseconds'`;
  return replaceClock(url, `pg_catalog.clock_timestamp() + ${offset}`, `pg_catalog.now() + ${offset}`);
}

/** Stops the clock of a test's database at a moment (whole milliseconds), so that instants can be compared exactly. */
export function stopClock(url: string, at: Date): Promise<void> {
  const instant = `timestamptz '${at.toISOString()}'`;
  return replaceClock(url, instant, instant);
}

function replaceClock(url: string, clock: string, now: string): Promise<void> {
  return executeStatement(
    url,
    `create or replace function holdpoint.clock() returns timestamptz language sql volatile
       as $$ select date_trunc('milliseconds', ${clock}) $$;
     create or replace function holdpoint.now() returns timestamptz language sql stable as $$ select ${now} $$`,
  );
}
