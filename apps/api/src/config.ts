import { isIP } from "node:net";
import {
  checkQueue,
  readEnvironment,
  SERVER_ENV,
  SERVER_USAGE,
  type ServerSettings,
  serverSettings,
} from "@holdpoint/store";
import { z } from "zod";
import { type CallbackSecret, readCallbackSecrets } from "./callback-signature.ts";
import { readTokens, type Token } from "./tokens.ts";

/** What the api is configured with. */
export interface Config extends ServerSettings {
  readonly host: string;
  readonly port: number;
  readonly tokens: readonly Token[];
  readonly callbackSecrets: readonly CallbackSecret[];
}

export const CONFIG_HELP = `${SERVER_USAGE}
  HOLDPOINT_API_TOKENS           who may call, while there is no other identity (required):
                                 token=user:role,role;token=user:role
                                 roles: requester, operator, task_runner (what the token may call), and roles that
                                 approval rules name (manager …): these are assigned at the start, as far as nobody has revoked them
                                 with such tokens the api listens on loopback only
  HOLDPOINT_CALLBACK_SECRETS     who may report to POST /callbacks/<source>: source=secret;source2=secret
                                 at least 16 characters each; two for one source while it changes them
                                 (header holdpoint-signature: t=<unix seconds>,v1=<hex of HMAC-SHA256 over t.body>,
                                 at most 5 minutes off this machine's clock)
  HOLDPOINT_API_HOST             address to listen on (127.0.0.1)
  HOLDPOINT_API_PORT             port to listen on, 0 picks a free one (4080)
`;

const LOOPBACK =
  "must be a loopback address (127.0.0.1, ::1 or localhost): development tokens are no protection on a network";

const Env = z
  .object({
    ...SERVER_ENV,
    HOLDPOINT_API_HOST: z.string().refine(isLoopback, { error: LOOPBACK }).default("127.0.0.1"),
    HOLDPOINT_API_PORT: z
      .string()
      .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535, { error: "must be a port, 0 to 65535" })
      .transform(Number)
      .default(4080),
    HOLDPOINT_API_TOKENS: z.string({ error: "is missing: token=user:role,role;… (see --help)" }).transform(readTokens),
    HOLDPOINT_CALLBACK_SECRETS: z.string().default("").transform(readCallbackSecrets),
  })
  .superRefine(checkQueue);

/**
 * Reads the configuration from the environment, once. An empty value counts as absent.
 *
 * @throws {Error} names every mistake at once, and no secret.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const env = readEnvironment(Env, environment);
  return Object.freeze({
    ...serverSettings(env),
    host: env.HOLDPOINT_API_HOST,
    port: env.HOLDPOINT_API_PORT,
    tokens: env.HOLDPOINT_API_TOKENS,
    callbackSecrets: env.HOLDPOINT_CALLBACK_SECRETS,
  });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
