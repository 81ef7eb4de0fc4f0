import { isIP } from "node:net";
import { z } from "zod";
import { readTokens, type Token } from "./tokens.ts";

export interface Config {
  readonly databaseUrl: string;
  /** Null: the queue lives in the database. */
  readonly redisUrl: string | null;
  readonly host: string;
  readonly port: number;
  readonly tokens: readonly Token[];
  readonly pooled: boolean;
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error" | "silent";
}

/** What is wrong with the configuration: all of it, one line each. */
export class ConfigError extends Error {
  readonly code = "CONFIG_INVALID";
  constructor(mistakes: readonly string[]) {
    super(`The configuration is not valid:\n${mistakes.map((mistake) => `  ${mistake}`).join("\n")}`);
    this.name = "ConfigError";
  }
}

export const CONFIG_HELP = `  HOLDPOINT_DATABASE_URL   postgres://user:password@host:port/database (required)
  HOLDPOINT_API_TOKENS     who may call, while there is no other identity (required):
                           token=user:role,role;token=user:role
                           roles: requester, operator, and every role that approval rules name (manager …);
                           with such tokens the api listens on loopback only
  HOLDPOINT_REDIS_URL      redis://host:port; without it the queue lives in the database
  HOLDPOINT_API_HOST       address to listen on (127.0.0.1)
  HOLDPOINT_API_PORT       port to listen on, 0 picks a free one (4080)
  HOLDPOINT_POOLED         true if the database is behind a pooler in transaction mode (false)
  HOLDPOINT_LOG_LEVEL      trace, debug, info, warn, error or silent (info)
`;

const url = (...protocols: readonly string[]) =>
  z
    .string({ error: "is missing" })
    .refine((text) => protocols.some((it) => text.startsWith(`${it}://`)) && URL.canParse(text), {
      error: `must be a URL that starts with ${protocols.map((it) => `${it}://`).join(" or ")}`,
    });

const LOOPBACK =
  "must be a loopback address (127.0.0.1, ::1 or localhost): development tokens are no protection on a network";

const Environment = z.object({
  HOLDPOINT_DATABASE_URL: url("postgres", "postgresql"),
  HOLDPOINT_REDIS_URL: url("redis", "rediss").optional(),
  HOLDPOINT_API_HOST: z.string().refine(isLoopback, { error: LOOPBACK }).default("127.0.0.1"),
  HOLDPOINT_API_PORT: z
    .string()
    .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535, { error: "must be a port, 0 to 65535" })
    .transform(Number)
    .default(4080),
  HOLDPOINT_API_TOKENS: z.string({ error: "is missing: token=user:role,role;… (see --help)" }).transform(readTokens),
  HOLDPOINT_POOLED: z.stringbool({ error: "must be true or false" }).default(false),
  HOLDPOINT_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "silent"]).default("info"),
});

/**
 * Reads the configuration from the environment, once. An empty value counts as absent.
 *
 * @throws {ConfigError} with every mistake.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ""),
  );
  const parsed = Environment.safeParse(given);
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`));
  }
  const { data } = parsed;
  return {
    databaseUrl: data.HOLDPOINT_DATABASE_URL,
    redisUrl: data.HOLDPOINT_REDIS_URL ?? null,
    host: data.HOLDPOINT_API_HOST,
    port: data.HOLDPOINT_API_PORT,
    tokens: data.HOLDPOINT_API_TOKENS,
    pooled: data.HOLDPOINT_POOLED,
    logLevel: data.HOLDPOINT_LOG_LEVEL,
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
