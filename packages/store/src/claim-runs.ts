import { setTimeout as sleep } from "node:timers/promises";
import { LONE_TAKEOVERS, reduce, STATUSES, submitted } from "@holdpoint/core";
import { announcedOf } from "./announce.ts";
import { type Store, statement } from "./db.ts";
import { asError, execute, executeBatch } from "./execute.ts";
import {
  IS_ALONE,
  IS_NEW,
  LOADED_ALONE,
  LOADED_NEW,
  type LoadedJson,
  type LoadedRun,
  loadRuns,
  readOne,
} from "./load-run.ts";
import { fewIds } from "./parts.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

export interface Claim {
  readonly runIds: readonly string[];
  readonly workerId: string;
  /** The run must show progress within this time, in milliseconds. */
  readonly progressMs: number;
  /** Whether this process may take a run that was lost twice in a row: it takes one at a time, so that the guilty one fails alone. */
  readonly mayTakeSuspect: boolean;
  /**
   * Whether these runs were only submitted, as far as is known: then nothing of a history is looked for. One of which that
   * turns out not to be so costs a second round trip, shared by all such. Default false.
   */
  readonly areNew?: boolean;
}

/** A run whose claim or load has failed. */
export interface UnloadedRun {
  readonly runId: string;
  /** The run as it was claimed. Null if the claim itself failed: if its answer was lost, only the row knows whose it is. */
  readonly taken: Run | null;
  readonly error: Error;
}

/** Whether a claimed run could not be loaded. */
export function isUnloaded(claimed: LoadedRun | UnloadedRun): claimed is UnloadedRun {
  return "error" in claimed;
}

/**
 * Claims runs for a worker and loads all that is needed to continue: in one round trip, or a second one for those that have
 * more than the statement looks for. The condition is the status
 * and no owner, never the version of the wake-up; a run that somebody else is moving is passed over and tried again, since
 * its wake-up comes only once. Each run is claimed and loaded or not by itself.
 *
 * @returns the runs that are now this worker's, in order of their ids, and those of which that is not known.
 */
export async function claimRuns(store: Store, claim: Claim): Promise<readonly (LoadedRun | UnloadedRun)[]> {
  const claimed = [...(await claimOnce(store, claim))];
  for (let tries = 1; tries < CLAIM_TRIES; tries += 1) {
    const mayTakeSuspect = claim.mayTakeSuspect && !claimed.some(isSuspect);
    const known = new Set(claimed.map(runIdOf));
    const left = claim.runIds.filter((id) => !known.has(id));
    const runIds = left.length === 0 ? [] : await findPassedOver(store, left, mayTakeSuspect);
    if (runIds.length === 0) break;
    await sleep(tries * PASSED_OVER_PAUSE_MS);
    claimed.push(...(await claimOnce(store, { ...claim, runIds, mayTakeSuspect })));
  }
  return claimed.toSorted((a, b) => (runIdOf(a) < runIdOf(b) ? -1 : 1));
}

/** How often a run is tried that somebody else is moving: api and sweeper hold a row for a statement, no longer. */
const CLAIM_TRIES = 4;
const PASSED_OVER_PAUSE_MS = 10;

function runIdOf(claimed: LoadedRun | UnloadedRun): string {
  return isUnloaded(claimed) ? claimed.runId : claimed.run.id;
}

function isSuspect(claimed: LoadedRun | UnloadedRun): boolean {
  const run = isUnloaded(claimed) ? claimed.taken : claimed.run;
  return run !== null && run.state.takeovers >= LONE_TAKEOVERS;
}

/** Those of these runs that could be claimed and were not: somebody else held their rows. */
async function findPassedOver(
  store: Store,
  runIds: readonly string[],
  mayTakeSuspect: boolean,
): Promise<readonly string[]> {
  const values = [store.tenantId, runIds, mayTakeSuspect];
  return (await execute<{ id: string }>(store, PASSED_OVER, values)).map(({ id }) => id);
}

async function claimOnce(store: Store, claim: Claim): Promise<readonly (LoadedRun | UnloadedRun)[]> {
  const runIds = claim.runIds.toSorted();
  let { mayTakeSuspect } = claim;
  const outcomes = await executeBatch<string, ClaimRow & { ord: number }>(runIds, async (items) => {
    const rows = await execute<ClaimRow>(store, claim.areNew === true ? CLAIM_NEW : CLAIM, [
      store.tenantId,
      items.map(({ item }) => item),
      claim.workerId,
      claim.progressMs,
      mayTakeSuspect,
    ]);
    // If the batch was split, its parts together still take one suspect.
    if (rows.some(({ suspect }) => suspect)) mayTakeSuspect = false;
    return rows.map((row) => ({ ...row, ord: runIds.indexOf(row.run.id) }));
  });
  const reloaded = await reloadIncomplete(store, outcomes);
  return outcomes.flatMap((outcome, ord): readonly (LoadedRun | UnloadedRun)[] => {
    const runId = runIds[ord] ?? "";
    if (outcome instanceof Error) return [{ runId, taken: null, error: outcome }];
    const [row] = outcome;
    if (row === undefined) return [];
    const loaded = row.complete ? readOne(row) : reloaded(row);
    if (loaded instanceof Error) return [{ runId, taken: runOf(row.run), error: loaded }];
    return loaded === null ? [] : [loaded];
  });
}

type ClaimRow = LoadedJson & { readonly complete: boolean; readonly suspect: boolean };

/**
 * Loads those of which the claim has not loaded all: it waited for somebody's change, so that it owns the row as it is now
 * and read the rest as it was before; or the run has a history, or a line, that the statement did not look for. Gives what
 * says what a row has become: null if somebody has taken the run away meanwhile.
 */
async function reloadIncomplete(
  store: Store,
  outcomes: readonly (readonly ClaimRow[] | Error)[],
): Promise<(row: ClaimRow) => LoadedRun | Error | null> {
  const rows = outcomes.flatMap((outcome) => (outcome instanceof Error ? [] : outcome.filter((row) => !row.complete)));
  if (rows.length === 0) return () => null;
  const runIds = rows.map(({ run }) => run.id);
  const loaded = await loadRuns(store, runIds).catch(asError);
  return ({ run }) => {
    if (loaded instanceof Error) return loaded;
    const own = loaded.get(run.id) ?? null;
    return own === null || own instanceof Error || isSameClaim(own, run) ? own : null;
  };
}

function isSameClaim({ run }: LoadedRun, claimed: RunJson): boolean {
  return run.state.owner === claimed.owner && run.epoch === claimed.epoch;
}

/** Which statuses a claim takes and where it leads, by core's table. */
const CLAIMABLE = STATUSES.flatMap((from) => {
  const sample = { ...submitted(), status: from, openAttempts: 1, waitDeadline: null, queuedSince: null };
  const decision = reduce(sample, { type: "Claimed", owner: "worker" }, { kind: "worker", id: "worker" });
  return decision.verdict === "moved" || decision.verdict === "recorded" ? [{ from, to: decision.next.status }] : [];
});

const CLAIMABLE_NOW = `r.owner is null and not r.is_task and r.status in (${CLAIMABLE.map(({ from }) => `'${from}'`).join(", ")})
    and (r.status = 'queued' or r.open_attempts > 0)`;

const NEXT_STATUS = `case r.status ${CLAIMABLE.map(({ from, to }) => `when '${from}' then '${to}'`).join(" ")} end`;

/** Whether the run was lost so often in a row that only one of its kind is claimed at a time. */
const SUSPECT = `r.takeovers + (r.lost_at is not null)::int >= ${LONE_TAKEOVERS}`;

/** Each run is found by its id, and locked in the order of the ids. */
const found = (condition: string, lock: string): string => `
  from (select t.id from unnest($2::uuid[]) as t(id) where ${fewIds("t.id")} order by t.id) t
  cross join lateral (
    select r.id, r.status, ${SUSPECT} as suspect from holdpoint.runs r
    where r.id = t.id and r.tenant_id is not distinct from $1::uuid and ${condition}
    ${lock}) r`;

const PASSED_OVER = statement(
  "find_passed_over",
  `select r.id ${found(CLAIMABLE_NOW, "")} where $3::boolean or not r.suspect`,
);

const claimWith = (loaded: string, complete: string): string => `
with locked as materialized (
  select r.id, r.status, r.suspect ${found(
    `${CLAIMABLE_NOW}
      -- A process that does not know yet that it is gone would only lose it again.
      and not exists (select from holdpoint.workers w where w.id = $3::uuid and w.gone_at is not null)`,
    "for update of r skip locked",
  )}
),
moved as (
  update holdpoint.runs r set
    status = ${NEXT_STATUS}, version = r.version + 1, epoch = r.epoch + 1, owner = $3::uuid, claimed_at = holdpoint.clock(),
    takeovers = r.takeovers + (r.lost_at is not null)::int, lost_at = null, lost_reason = null,
    queued_since = null, wait_deadline = case when r.status = ${NEXT_STATUS} then r.wait_deadline end,
    progress_due_at = holdpoint.clock() + $4::float8 * interval '1 millisecond',
    updated_at = greatest(holdpoint.clock(), r.updated_at)
  from locked l
  -- Suspects are taken one at a time.
  where r.id = l.id and r.owner is null
    and (not l.suspect or ($5::boolean and r.id = (select s.id from locked s where s.suspect order by s.id limit 1)))
  returning r.*, to_json(r) as run, l.status as from_status, l.suspect
),
logged as (
  insert into holdpoint.transitions
    (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, reason, at)
  select $1::uuid, m.id, m.version, m.from_status, m.status, 'Claimed', 'worker', $3::text, m.epoch, null, m.updated_at
  from moved m
),
${announcedOf("moved", "r.status <> r.from_status")}
select r.run, r.suspect, s.version = r.version - 1 and s.step_seq = r.step_seq and ${complete} as complete,
  ${loaded}
from moved r join holdpoint.runs s on s.id = r.id
order by r.id`;

/** Loads nothing of a line: the few runs that do something again are loaded by a second statement. */
const CLAIM = statement("claim_runs", claimWith(LOADED_ALONE, IS_ALONE));

/** Loads no history: for runs that were only submitted. */
const CLAIM_NEW = statement("claim_runs", claimWith(LOADED_NEW, IS_NEW));
