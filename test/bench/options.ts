import { parseArgs } from "node:util";
import { z } from "zod";
import type { Figure } from "./figure.ts";
import type { QueueKind, Settings } from "./settings.ts";

/** What the command line asks for. */
export interface Options {
  readonly settings: Settings;
  readonly figures: readonly Figure[];
  /** Where the report goes as JSON, or null. */
  readonly json: string | null;
  /** Whether BENCHMARKS.md gets the results. */
  readonly write: boolean;
}

export const HELP = `The benchmark: what the product costs, each figure beside its ceiling measured in the same run.

  pnpm bench [figure ...] [--quick] [--rounds <n>] [--queue redis|postgres|both]
             [--json <file>] [--profile <folder>] [--write]

  figure     which figures, all by default
  --quick    small trials: shows that all works, not how fast it is
  --rounds   how often each trial is played (default 3); the report has medians
  --queue    on which server the wake-ups wait (default both; Postgres only where there is no redis-server)
  --json     also writes the report as JSON
  --profile  also writes CPU profiles of the product's workers, for Chrome's developer tools, and Postgres' statement
             statistics
  --write    writes the results into BENCHMARKS.md
  --help     this text
`;

const Values = z.object({
  rounds: z.coerce.number().int().min(1).max(99).default(3),
  queue: z.enum(["redis", "postgres", "both"]).default("both"),
});

/**
 * Reads the command line; null: help is asked for.
 *
 * @throws {Error} it has mistakes.
 */
export function readOptions(
  args: readonly string[],
  { known, hasRedis }: { readonly known: readonly Figure[]; readonly hasRedis: boolean },
): Options | null {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      queue: { type: "string" },
      json: { type: "string" },
      profile: { type: "string" },
      write: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  const parsed = Values.safeParse({ rounds: values.rounds, queue: values.queue });
  if (!parsed.success) throw new Error(`${z.prettifyError(parsed.error)}\nTry --help.`);
  const { rounds, queue } = parsed.data;
  const settings = {
    rounds,
    quick: values.quick,
    queues: queuesOf(queue, hasRedis),
    profileDir: values.profile ?? null,
  };
  return { settings, figures: chosen(positionals, known), json: values.json ?? null, write: values.write };
}

function queuesOf(queue: QueueKind | "both", hasRedis: boolean): readonly QueueKind[] {
  if (queue === "redis" && !hasRedis)
    throw new Error("redis-server is not installed: install Redis, or use --queue postgres");
  if (queue !== "both") return [queue];
  return hasRedis ? ["redis", "postgres"] : ["postgres"];
}

function chosen(names: readonly string[], known: readonly Figure[]): readonly Figure[] {
  const unknown = names.filter((name) => !known.some((figure) => figure.name === name));
  if (unknown.length > 0) {
    const list = known.map(({ name }) => name).join(", ");
    throw new Error(`There is no figure "${unknown.join('", "')}". There are: ${list}`);
  }
  return names.length === 0 ? known : known.filter(({ name }) => names.includes(name));
}
