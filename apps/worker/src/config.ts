import { checkQueue, readEnvironment, SERVER_ENV, type ServerSettings, serverSettings } from "@holdpoint/store";
import { z } from "zod";

/** What a worker is configured with, by environment. Times in milliseconds. */
export interface WorkerConfig extends ServerSettings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly drainMs: number;
  /** Null: the metrics are shown nowhere. */
  readonly metrics: MetricsPlace | null;
}

/** Where a supervisor shows the metrics of its processes. */
export interface MetricsPlace {
  readonly host: string;
  readonly port: number;
}

const Milliseconds = z.coerce.number().int().min(100).max(3_600_000);

const Env = z
  .object({
    ...SERVER_ENV,
    HOLDPOINT_LEASE_MS: Milliseconds.default(15_000),
    HOLDPOINT_RENEW_MS: Milliseconds.default(5_000),
    HOLDPOINT_DRAIN_MS: Milliseconds.default(30_000),
    HOLDPOINT_METRICS_HOST: z.string().default("127.0.0.1"),
    HOLDPOINT_METRICS_PORT: z
      .string()
      .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535, { error: "must be a port, 0 to 65535" })
      .transform(Number)
      .optional(),
  })
  .superRefine((env, context) => {
    checkQueue(env, context);
    if (env.HOLDPOINT_RENEW_MS * 3 <= env.HOLDPOINT_LEASE_MS) return;
    const message = "must fit three times into HOLDPOINT_LEASE_MS";
    context.addIssue({ code: "custom", path: ["HOLDPOINT_RENEW_MS"], message });
  });

/**
 * Reads the configuration.
 *
 * @throws {Error} names every mistake at once.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): WorkerConfig {
  const env = readEnvironment(Env, environment);
  return Object.freeze({
    ...serverSettings(env),
    leaseMs: env.HOLDPOINT_LEASE_MS,
    renewMs: env.HOLDPOINT_RENEW_MS,
    drainMs: env.HOLDPOINT_DRAIN_MS,
    metrics:
      env.HOLDPOINT_METRICS_PORT === undefined
        ? null
        : { host: env.HOLDPOINT_METRICS_HOST, port: env.HOLDPOINT_METRICS_PORT },
  });
}
