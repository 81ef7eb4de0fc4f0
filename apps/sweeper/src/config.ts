import { parseArgs } from "node:util";
import {
  checkQueue,
  readEnvironment,
  SERVER_ENV,
  SERVER_USAGE,
  type ServerSettings,
  serverSettings,
} from "@holdpoint/store";
import { z } from "zod";

/** What a sweeper is configured with. Times in milliseconds. */
export interface SweeperConfig extends ServerSettings {
  readonly sweepMs: number;
  readonly graceMs: number;
  readonly limit: number;
}

export const USAGE = `holdpoint sweeper

Judges deadlines and leases, reminds approvers, tries again what is due, repairs lost wake-ups. Any number may run.

Environment (times in milliseconds):
${SERVER_USAGE}
  HOLDPOINT_SWEEP_MS             pause between two passes (1000)
  HOLDPOINT_GRACE_MS             how long after its lease a worker is still waited for (5000)
  HOLDPOINT_SWEEP_LIMIT          most runs that one sweep looks at in a pass (500)
`;

const Milliseconds = z.coerce.number().int().min(50).max(3_600_000);

const Env = z
  .object({
    ...SERVER_ENV,
    HOLDPOINT_SWEEP_MS: Milliseconds.default(1_000),
    HOLDPOINT_GRACE_MS: Milliseconds.default(5_000),
    HOLDPOINT_SWEEP_LIMIT: z.coerce.number().int().min(1).max(10_000).default(500),
  })
  .superRefine((env, context) => {
    checkQueue(env, context);
    if (env.HOLDPOINT_SWEEP_MS <= env.HOLDPOINT_GRACE_MS) return;
    context.addIssue({ code: "custom", path: ["HOLDPOINT_SWEEP_MS"], message: "must not exceed HOLDPOINT_GRACE_MS" });
  });

/** Whether help was asked for. @throws {Error} an argument is not known. */
export function asksForHelp(argv: readonly string[]): boolean {
  return parseArgs({ args: [...argv], options: { help: { type: "boolean", short: "h", default: false } } }).values.help;
}

/**
 * Reads the configuration.
 *
 * @throws {Error} names every mistake at once.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): SweeperConfig {
  const env = readEnvironment(Env, environment);
  return Object.freeze({
    ...serverSettings(env),
    sweepMs: env.HOLDPOINT_SWEEP_MS,
    graceMs: env.HOLDPOINT_GRACE_MS,
    limit: env.HOLDPOINT_SWEEP_LIMIT,
  });
}
