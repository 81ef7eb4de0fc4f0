import { type Client, createClient } from "@holdpoint/client";
import type { Colours } from "./colours.ts";
import { UsageError } from "./exit-codes.ts";

/** What commands see of the world: nothing else is read or written by them. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: Output;
  readonly err: (text: string) => void;
  readonly now: () => Date;
  /** The text of a file that an option names. */
  readonly readText: (path: string) => Promise<string>;
  /** Starts an entry point of another app in the place of this process; gives its exit code. */
  readonly startApp: (entry: string, args: readonly string[]) => Promise<number>;
}

/** Where results go. */
export interface Output {
  readonly write: (text: string) => void;
  readonly colours: Colours;
  /** Columns that a line may have. */
  readonly width: number;
}

/** For whom and when something is shown. */
export interface View {
  readonly out: Output;
  readonly now: Date;
}

const DEFAULT_URL = "http://127.0.0.1:4080";

export const ENVIRONMENT_HELP = `
Environment:
  HOLDPOINT_API_URL   where the api listens (${DEFAULT_URL})
  HOLDPOINT_TOKEN     names you; required by everything that asks the api
  HOLDPOINT_TASK_TOKEN
                      the token of a task, from its start: with it \`holdpoint tasks …\` speaks for the task
  NO_COLOR            no colours, also on a terminal
  COLUMNS             the width of lines where the output is no terminal (120)
`;

const NO_TOKEN = "HOLDPOINT_TOKEN is not set: it names you to the api. `npm start` prints the development tokens.";
const NO_TASK_TOKEN = "HOLDPOINT_TASK_TOKEN is not set: it is the token that `holdpoint tasks start` prints.";

/** A client for the environment's server and token. @throws {UsageError} one of them is missing or wrong. */
export function openClient({ env }: Pick<World, "env">): Client {
  return openWith(env, "HOLDPOINT_TOKEN", NO_TOKEN);
}

/** A client that speaks for a task. @throws {UsageError} its token is missing or wrong. */
export function openTaskClient({ env }: Pick<World, "env">): Client {
  return openWith(env, "HOLDPOINT_TASK_TOKEN", NO_TASK_TOKEN);
}

function openWith(env: World["env"], name: string, missing: string): Client {
  const baseUrl = env.HOLDPOINT_API_URL || DEFAULT_URL;
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw new UsageError(`HOLDPOINT_API_URL is "${baseUrl}": it must be an address like ${DEFAULT_URL}`);
  }
  const token = env[name];
  if (token === undefined || token === "") throw new UsageError(missing);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError(`${name} has characters that no token has`);
  return createClient({ baseUrl, token });
}
