/** The server that the wake-ups wait on. */
export type QueueKind = "redis" | "postgres";

/** What a whole run of the benchmark is started with. */
export interface Settings {
  /** How often each trial is played; the report has medians. */
  readonly rounds: number;
  /** Small trials, which show that all works and not how fast it is. */
  readonly quick: boolean;
  readonly queues: readonly QueueKind[];
  /** Where CPU profiles of the product's workers and Postgres' statement statistics go; null: none are made. */
  readonly profileDir: string | null;
}

/** The size of a trial: `full`, or `quick` where the settings ask for that. */
export function sized<Size>({ quick }: Settings, sizes: { readonly full: Size; readonly quick: Size }): Size {
  return quick ? sizes.quick : sizes.full;
}
