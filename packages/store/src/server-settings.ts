import { z } from "zod";

const url = (protocol: RegExp, example: string) =>
  z.url({ protocol, error: ({ input }) => (input === undefined ? "is missing" : `must be a url like ${example}`) });

const PostgresUrl = url(/^postgres(ql)?$/, "postgresql://user:password@host:5432/database");

/** The environment that every process of the fleet reads: where Postgres and the queue are. */
export const SERVER_ENV = {
  HOLDPOINT_DATABASE_URL: PostgresUrl,
  HOLDPOINT_QUEUE_DATABASE_URL: PostgresUrl.optional(),
  HOLDPOINT_REDIS_URL: url(/^rediss?$/, "redis://host:6379").optional(),
  HOLDPOINT_POOLED: z.enum(["0", "1"], { error: "must be 0 or 1" }).default("0"),
  HOLDPOINT_LOG_LEVEL: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
} as const;

/** The lines of a usage text for `SERVER_ENV`. */
export const SERVER_USAGE = `  HOLDPOINT_DATABASE_URL         Postgres, required
  HOLDPOINT_REDIS_URL            queue on this Redis; without it the queue is in Postgres
  HOLDPOINT_QUEUE_DATABASE_URL   queue on another Postgres url (needed behind a transaction pooler)
  HOLDPOINT_POOLED               1: the database url leads to a transaction pooler
  HOLDPOINT_LOG_LEVEL            debug, info, warn, error or silent (info)`;

type ServerEnv = z.infer<z.ZodObject<typeof SERVER_ENV>>;

/** Where Postgres and the queue are. */
export interface ServerSettings {
  readonly databaseUrl: string;
  readonly pooled: boolean;
  readonly queue: { readonly kind: "postgres" | "redis"; readonly url: string };
  readonly logLevel: ServerEnv["HOLDPOINT_LOG_LEVEL"];
}

/** The settings in what `SERVER_ENV` has read. */
export function serverSettings(env: ServerEnv): ServerSettings {
  const redis = env.HOLDPOINT_REDIS_URL;
  return {
    databaseUrl: env.HOLDPOINT_DATABASE_URL,
    pooled: env.HOLDPOINT_POOLED === "1",
    queue:
      redis === undefined
        ? { kind: "postgres", url: env.HOLDPOINT_QUEUE_DATABASE_URL ?? env.HOLDPOINT_DATABASE_URL }
        : { kind: "redis", url: redis },
    logLevel: env.HOLDPOINT_LOG_LEVEL,
  };
}

/** Refuses a place for the queue where it cannot be: it listens, and cannot do that through a transaction pooler. */
export function checkQueue(env: ServerEnv, context: z.RefinementCtx): void {
  const hasOwnPlace = env.HOLDPOINT_REDIS_URL !== undefined || env.HOLDPOINT_QUEUE_DATABASE_URL !== undefined;
  if (env.HOLDPOINT_POOLED === "0" || hasOwnPlace) return;
  const message =
    "is needed with HOLDPOINT_POOLED=1: the queue cannot listen through a transaction pooler (or set HOLDPOINT_REDIS_URL)";
  context.addIssue({ code: "custom", path: ["HOLDPOINT_QUEUE_DATABASE_URL"], message });
}

/**
 * Reads an environment by a schema; an empty variable counts as not set.
 *
 * @throws {Error} names every mistake at once, with the variable.
 */
export function readEnvironment<Schema extends z.ZodType>(
  schema: Schema,
  environment: Readonly<Record<string, string | undefined>>,
): z.output<Schema> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map(({ path, message }) => `  ${path.join(".")} ${message}`);
  throw new Error(`The configuration is not usable:\n${mistakes.join("\n")}`);
}

/** What a person can do about an error of the first statement: the server is away, or the schema is not there. */
export function explainStartError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? String(error.code) : "";
  if (code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "ETIMEDOUT") {
    return `Postgres cannot be reached (${code}). Is it running, and is HOLDPOINT_DATABASE_URL right?`;
  }
  if (code === "28P01" || code === "28000") return "Postgres refused the user or password in HOLDPOINT_DATABASE_URL.";
  if (code === "3D000") return "The database named in HOLDPOINT_DATABASE_URL does not exist.";
  if (code === "42P01" || code === "3F000") return "The schema is not there yet: run `holdpoint migrate` first.";
  return error.message;
}
