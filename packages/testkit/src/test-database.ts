import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import { databaseUrl, executeStatement, TEMPLATE_DATABASE } from "./template-database.ts";
import "./test-context.ts";

export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
}

/**
 * Makes a database of its own for one test file: migrated and empty, or a copy of another that nobody is connected to.
 * Disposing of it drops it, also while somebody is still connected.
 */
export async function createTestDatabase(template = TEMPLATE_DATABASE): Promise<TestDatabase> {
  const serverUrl = inject("postgresUrl");
  const name = `t_${randomUUID().replaceAll("-", "")}`;
  await executeStatement(serverUrl, `create database ${name} template ${template}`);
  return {
    url: databaseUrl(serverUrl, name),
    name,
    [Symbol.asyncDispose]: () => executeStatement(serverUrl, `drop database ${name} with (force)`),
  };
}
