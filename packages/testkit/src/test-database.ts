import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import { databaseUrl, executeStatement, TEMPLATE_DATABASE } from "./template-database.ts";
import "./test-context.ts";

export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
}

/**
 * Makes a migrated, empty database of its own for one test file. Disposing of it drops it, also while somebody is
 * still connected.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = inject("postgresUrl");
  const name = `t_${randomUUID().replaceAll("-", "")}`;
  await executeStatement(serverUrl, `create database ${name} template ${TEMPLATE_DATABASE}`);
  return {
    url: databaseUrl(serverUrl, name),
    name,
    [Symbol.asyncDispose]: () => executeStatement(serverUrl, `drop database ${name} with (force)`),
  };
}
