import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { SERVER_USAGE } from "@holdpoint/store";
import { z } from "zod";

/** What the command line says. */
export interface WorkerArguments {
  /** The module that gives the agents, as a file url. */
  readonly agents: string;
  readonly processes: number;
  /** Runs that one process works on at once. */
  readonly slots: number;
}

export const USAGE = `holdpoint worker --agents <module> [--processes N] [--slots N]

Takes up runs of the agents in <module> and works on them.

  --agents <module>   a module with a function openAgents(env), which gives { agents, close, tasks? }
  --processes N       working processes, 1 to 64 (default 1)
  --slots N           runs that each process works on at once, 1 to 256 (default 8)

Environment (times in milliseconds):
${SERVER_USAGE}
  HOLDPOINT_LEASE_MS             how long a process may work without a renewal (15000)
  HOLDPOINT_RENEW_MS             how often it renews, at most a third of the lease (5000)
  HOLDPOINT_DRAIN_MS             how long current steps may take at SIGTERM (30000)
  HOLDPOINT_METRICS_PORT         port of /metrics for Prometheus, one for all processes, 0 picks a free one (none)
  HOLDPOINT_METRICS_HOST         address of that port (127.0.0.1)

SIGTERM and SIGINT drain: current steps finish, every run is given back, exit 0. So does \`holdpoint workers drain\`; another
process is started in its place, or, with --stay-down, none: once all are down, exit 0.
`;

const Numbers = z.object({
  processes: z.coerce.number("--processes must be a number").int().min(1).max(64),
  slots: z.coerce.number("--slots must be a number").int().min(1).max(256),
});

/**
 * Reads the command line; null when help was asked for.
 *
 * @throws {Error} says what is wrong.
 */
export function readArguments(argv: readonly string[], cwd: string): WorkerArguments | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      agents: { type: "string" },
      processes: { type: "string", default: "1" },
      slots: { type: "string", default: "8" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  if (values.agents === undefined) throw new Error("--agents <module> is required: the module that gives the agents");
  const numbers = Numbers.safeParse(values);
  if (!numbers.success) throw new Error(z.prettifyError(numbers.error));
  return { agents: pathToFileURL(resolve(cwd, values.agents)).href, ...numbers.data };
}
