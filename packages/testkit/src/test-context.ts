import type {} from "vitest";

// What the global setup of the tests gives to every test file (vitest.global.ts in the root).
declare module "vitest" {
  interface ProvidedContext {
    /** The superuser's connection string of the tests' Postgres server, which has the database `holdpoint_template`. */
    postgresUrl: string;
    /** The tests' Redis; `null` where there is none. */
    redisUrl: string | null;
  }
}
