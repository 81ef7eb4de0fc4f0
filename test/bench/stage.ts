import { migrateQueue, type QueueConnection } from "@holdpoint/queue";
import { Redis } from "ioredis";
import pg from "pg";
import { openServers, type Servers } from "./servers.ts";
import type { QueueKind, Settings } from "./settings.ts";

/** Where trials are played: the servers, and a fresh database for each. */
export interface Stage extends AsyncDisposable {
  readonly settings: Settings;
  readonly servers: Servers;
  /** A database with the schema that `migrate` makes, and an empty queue. */
  openArena(schema: Schema, queue: QueueKind): Promise<Arena>;
}

/** A schema, made once and copied for each trial. */
export interface Schema {
  /** Letters only; the name of its template database. */
  readonly name: string;
  readonly migrate: (url: string) => Promise<void>;
}

/** The world of one trial. */
export interface Arena extends AsyncDisposable {
  readonly database: string;
  readonly url: string;
  /** A queue on Postgres has a database of its own, so that its transactions are not counted as the store's. */
  readonly queue: QueueConnection;
  /** A connection to the database, for what a trial reads of it. */
  readonly admin: pg.Client;
}

/** Starts the servers. */
export async function openStage(settings: Settings): Promise<Stage> {
  const servers = await openServers({ withRedis: settings.queues.includes("redis") });
  const templates = new Map<string, Promise<string>>();
  let arenas = 0;

  const templateOf = (schema: Schema): Promise<string> => {
    const known = templates.get(schema.name) ?? makeTemplate(servers, schema);
    templates.set(schema.name, known);
    return known;
  };

  return {
    settings,
    servers,
    async openArena(schema, kind) {
      const template = await templateOf(schema);
      arenas += 1;
      const database = `${schema.name}_${arenas}`;
      await servers.admin.query(`create database ${database} template ${template}`);
      const queue = await openQueue(servers, kind, database);
      const url = urlOf(servers, database);
      const admin = new pg.Client({ connectionString: url });
      // The drop below may be faster than the end of the connection.
      admin.on("error", () => undefined);
      await admin.connect();
      return {
        database,
        url,
        queue,
        admin,
        async [Symbol.asyncDispose]() {
          await admin.end();
          for (const name of [database, queueDatabase(database)])
            await servers.admin.query(`drop database if exists ${name} with (force)`);
        },
      };
    },
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  };
}

async function makeTemplate(servers: Servers, { name, migrate }: Schema): Promise<string> {
  const template = `${name}_template`;
  await servers.admin.query(`create database ${template}`);
  const url = urlOf(servers, template);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("create extension pg_stat_statements"); // so that it can be read from within each copy
  await client.end();
  await migrate(url);
  return template;
}

async function openQueue(servers: Servers, kind: QueueKind, database: string): Promise<QueueConnection> {
  const queue = await emptyQueue(servers, kind, queueDatabase(database));
  await migrateQueue(queue);
  return queue;
}

async function emptyQueue(servers: Servers, kind: QueueKind, database: string): Promise<QueueConnection> {
  if (kind === "postgres") {
    await servers.admin.query(`create database ${database}`);
    return { kind, url: urlOf(servers, database) };
  }
  if (servers.redis === null) throw new Error("The stage was opened without Redis");
  const redis = new Redis(servers.redis.url);
  await redis.flushall();
  await redis.quit();
  return { kind, url: servers.redis.url };
}

function queueDatabase(database: string): string {
  return `${database}_queue`;
}

function urlOf(servers: Servers, database: string): string {
  const url = new URL(servers.postgres.url);
  url.pathname = `/${database}`;
  return url.href;
}
