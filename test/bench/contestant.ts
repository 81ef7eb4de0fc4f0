import type { Arena, Schema } from "./stage.ts";

/** Who does the work of a trial: the product, or the straw man that shows what the same servers give without it. */
export interface Contestant {
  readonly name: "product" | "straw man";
  readonly schema: Schema;
  /** The program of its worker's process; it serves a `worker-channel`. */
  readonly program: URL;
  /** Opens the side that gives work. */
  openClient(arena: Arena): Promise<Client>;
  readonly sql: ContestantSql;
}

/** Statements over a contestant's tables. */
export interface ContestantSql {
  /** Gives `waits`: whether a run has not ended. */
  readonly waits: string;
  /** Gives `seconds`: when the last run ended, by the database's clock, since 1970. */
  readonly endedAt: string;
  /** Gives `steps`: how many durable steps are stored. */
  readonly steps: string;
  /** Gives `seconds` for each durable step: when it was stored, by the database's clock, since 1970. */
  readonly stepTimes: string;
  /** Of the runs with the ids `$1`, gives `steps`: how many durable steps they have made together; and the `least` and the `most` that one has. */
  readonly progress: string;
}

/** The side that gives work. */
export interface Client extends AsyncDisposable {
  /** Stores runs, durably, and announces none of them. */
  submit(runs: number): Promise<Submitted>;
}

/** Runs that are stored and that nobody has heard of. */
export interface Submitted {
  readonly ids: readonly string[];
  /** Sends the wake-ups of all of them, in bulk. */
  announce(): Promise<void>;
}
