import type { AddressInfo } from "node:net";
import { openLog } from "@holdpoint/log";
import { openPublisher } from "@holdpoint/queue";
import { openStore, type Store } from "@holdpoint/store";
import { checkStore } from "@holdpoint/store/read";
import type { FastifyInstance } from "fastify";
import { buildApi } from "./build-api.ts";
import type { Config } from "./config.ts";
import { failureOf } from "./failure.ts";
import { assignTokenRoles } from "./tokens.ts";

const DRAIN_LIMIT_MS = 10_000;

export interface RunOptions {
  readonly config: Config;
  /** Ends with the reason to stop. */
  readonly stopped: Promise<string>;
  /** Is told the port once the api listens. */
  readonly onListening: (port: number) => void;
}

/**
 * Opens what the api needs, serves until it is told to stop, and drains.
 *
 * @throws {Error} Postgres cannot be used, its schema is not migrated, or the port is taken; nothing is left open then.
 */
export async function runApi({ config, stopped, onListening }: RunOptions): Promise<void> {
  const log = openLog({ service: "api", level: config.logLevel, redact: ["req.headers.authorization"] });
  const { databaseUrl, queue, pooled, tokens, callbackSecrets, host, port } = config;
  await using store = openStore({ url: databaseUrl, pooled, applicationName: "holdpoint-api" });
  await requireSchema(store, config);
  await assignTokenRoles(store, tokens);
  await using publisher = openPublisher(queue, {
    onError: (error) => log.warn({ event: "queue.failed", ...failureOf(error) }, "the queue reports a fault"),
  });
  const app = await buildApi({ store, publisher, tokens, callbackSecrets, log });
  await listen(app, { host, port });
  onListening((app.server.address() as AddressInfo).port); // a TCP server's address
  const reason = await stopped;
  log.info({ event: "api.draining", reason, drainMs: DRAIN_LIMIT_MS }, "api draining");
  const force = setTimeout(() => app.server.closeAllConnections(), DRAIN_LIMIT_MS);
  await app.close();
  clearTimeout(force);
  log.info({ event: "api.drained" }, "api drained");
}

async function listen(
  app: FastifyInstance,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    await app.close();
    const { code, error } = failureOf(cause);
    const advice = "Set HOLDPOINT_API_PORT to another, or to 0.";
    throw new Error(`Port ${port} of ${host} cannot be used (${code ?? error}). ${advice}`, { cause });
  }
}

/** Says why it will not start, before anything listens. */
async function requireSchema(store: Store, { databaseUrl }: Config): Promise<void> {
  const { hostname, port, pathname } = new URL(databaseUrl);
  const place = `Postgres at ${hostname}:${port === "" ? "5432" : port}${pathname}`;
  const check = await checkStore(store).catch((cause: unknown) => {
    const { code, error } = failureOf(cause);
    throw new Error(`${place} cannot be used (${code ?? error}). Is it running, and is HOLDPOINT_DATABASE_URL right?`, {
      cause,
    });
  });
  if (check === "migration_missing") throw new Error(`${place}: the schema is not migrated. Run holdpoint migrate.`);
}
