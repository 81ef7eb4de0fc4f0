import pg from "pg";

/** One durable move of a run. */
export interface StrawMove {
  readonly id: string;
  /** The version that the run must have; null: any, and it must be queued. */
  readonly version: number | null;
  readonly event: string;
  /** Where it leads; null: it stays. */
  readonly status: "running" | "waiting" | "completed" | null;
  /** The step that it stores, or null. */
  readonly step: { readonly seq: number; readonly result: string } | null;
}

/** The run after its move. */
export interface StrawRun {
  readonly version: number;
  readonly step_seq: number;
}

/** Commits moves; gives null where the run was not as expected. */
export type Mover = (move: StrawMove) => Promise<StrawRun | null>;

/** Statements under way at once, and most moves in one. */
const LANES = 2;
const BATCH_LIMIT = 100;

/**
 * Connections for the lanes. Each plans the statement once, for a few rows found by their ids, as the product's do: planned
 * for a full batch and a small table it would read the whole table each time.
 */
export function openMoverPool(url: string): pg.Pool {
  return new pg.Pool({ connectionString: url, max: LANES, options: "-c plan_cache_mode=force_generic_plan" });
}

/** Lets the moves of concurrent runs share statements: what arrives while they are under way goes with the next. */
export function openMover(pool: pg.Pool, owner: string): Mover {
  type Waiting = { move: StrawMove; resolve: (run: StrawRun | null) => void; reject: (error: unknown) => void };
  let waiting: Waiting[] = [];
  let underWay = 0;

  const send = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const { rows } = await pool.query<StrawRun & { id: string }>({ ...MOVE, values: [...columns(batch), owner] });
      const byId = new Map(rows.map((row) => [row.id, row]));
      for (const { move, resolve } of batch) resolve(byId.get(move.id) ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  const pump = (): void => {
    while (underWay < LANES && waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_LIMIT);
      waiting = waiting.slice(BATCH_LIMIT);
      underWay += 1;
      void send(batch).finally(() => {
        underWay -= 1;
        pump();
      });
    }
  };
  return (move) =>
    new Promise((resolve, reject) => {
      waiting.push({ move, resolve, reject });
      if (waiting.length === 1) setImmediate(pump);
    });
}

function columns(batch: readonly { readonly move: StrawMove }[]): readonly unknown[] {
  const column = (value: (move: StrawMove) => unknown) => batch.map(({ move }) => value(move));
  return [
    column(({ id }) => id),
    column(({ version }) => version),
    column(({ event }) => event),
    column(({ status }) => status),
    column(({ step }) => step?.seq ?? null),
    column(({ step }) => step?.result ?? null),
  ];
}

const MOVE = {
  name: "move",
  text: `
with wanted as (
  select * from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::int[], $6::text[])
    as w(id, version, event, status, step_seq, result)
),
moved as (
  update run r set
    version = r.version + 1,
    status = coalesce(w.status, r.status),
    owner = case when w.status is null or w.status = 'running' then $7::text end,
    step_seq = coalesce(w.step_seq, r.step_seq),
    waiting_for = case when w.status = 'waiting' then 'approval' end,
    updated_at = clock_timestamp()
  from wanted w
  where r.id = w.id
    and (w.version is null and r.status = 'queued' or r.version = w.version and r.owner = $7::text)
  returning r.id, r.version, r.status, r.step_seq, w.event, w.result
),
logged as (
  insert into transition (run_id, seq, status, event, actor)
  select id, version, status, event, $7::text from moved
),
stepped as (
  insert into step (run_id, seq, result) select id, step_seq, result::jsonb from moved where result is not null
)
select id, version, step_seq from moved`,
} as const;
