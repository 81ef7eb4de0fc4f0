import { type Store, statement } from "../db.ts";
import { execute } from "../execute.ts";
import { newestMigration } from "./check-store.ts";

/** What the database's server says of itself. */
export interface ServerFacts {
  readonly version: string;
  readonly versionNumber: number;
  /** It is a standby, which takes no writes. */
  readonly inRecovery: boolean;
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  readonly synchronousCommit: string;
  readonly synchronousStandbyNames: string;
  readonly standbys: number;
  /** Null where this role may not see it. */
  readonly synchronousStandbys: number | null;
  readonly connections: number;
  readonly maxConnections: number;
  /** 0: there is none. */
  readonly lockTimeoutMs: number;
  readonly statementTimeoutMs: number;
  /** The server's own clock, in milliseconds since the epoch. */
  readonly clockMs: number;
  /** By which instant the newest migration that the database has is named, and the newest that this program knows. */
  readonly migratedTo: number | null;
  readonly newestMigration: number;
}

/** What the tables say of the fleet. */
export interface FleetFacts {
  /** Null: no sweeper has ever looked. */
  readonly watch: { readonly seenBy: string; readonly seenAgoMs: number; readonly sinceAgoMs: number } | null;
  /** Workers that have not gone, at most 200. */
  readonly workers: readonly {
    readonly id: string;
    readonly host: string;
    readonly pid: number;
    readonly silent: boolean;
    readonly skewMs: number | null;
    readonly draining: boolean;
  }[];
  /** Agents that our workers serve, by name and version. */
  readonly agents: readonly {
    readonly name: string;
    readonly version: string;
    readonly servedBy: number;
    readonly queued: number;
    readonly oldestQueuedMs: number | null;
    /** Runs that have not ended, the queued ones among them; null: somebody serves them, and nobody has counted. */
    readonly live: number | null;
  }[];
}

/**
 * What the server says of itself; asked first, since it needs none of our tables.
 *
 * @throws when the database cannot be reached.
 */
export async function findServerFacts(store: Store): Promise<ServerFacts> {
  const [row] = await execute<ServerRow>(store, SERVER, []);
  if (row === undefined) throw new Error("the statement about the server gives one row");
  return {
    ...row.facts,
    clockMs: row.now.getTime(),
    migratedTo: row.migrations === null ? null : await migratedTo(store),
    newestMigration: newestMigration(),
  };
}

type ServerRow = {
  facts: Omit<ServerFacts, "clockMs" | "migratedTo" | "newestMigration">;
  migrations: string | null;
  now: Date;
};

async function migratedTo(store: Store): Promise<number | null> {
  const [row] = await execute<{ newest: string | null }>(store, MIGRATED, []);
  return row?.newest == null ? null : Number(row.newest);
}

/** What the tables say of the fleet, in one snapshot. @throws when the schema is older than this program. */
export async function findFleetFacts(store: Store): Promise<FleetFacts> {
  const [row] = await execute<FleetFacts>(store, FLEET, [store.tenantId]);
  if (row === undefined) throw new Error("the statement about the fleet gives one row");
  return { watch: row.watch, workers: row.workers, agents: row.agents };
}

const SERVER = statement(
  "find_server_facts",
  `select jsonb_build_object(
     'version', current_setting('server_version'),
     'versionNumber', current_setting('server_version_num')::int,
     'inRecovery', pg_is_in_recovery(),
     'fsync', current_setting('fsync')::boolean,
     'fullPageWrites', current_setting('full_page_writes')::boolean,
     'synchronousCommit', current_setting('synchronous_commit'),
     'synchronousStandbyNames', current_setting('synchronous_standby_names'),
     'standbys', (select count(*) from pg_stat_replication),
     -- Without the right to see it, every row is there and says nothing.
     'synchronousStandbys', (select case when count(*) = count(sync_state)
        then count(*) filter (where sync_state in ('sync', 'quorum')) end from pg_stat_replication),
     'connections', (select count(*) from pg_stat_activity where backend_type = 'client backend'),
     'maxConnections', current_setting('max_connections')::int,
     'lockTimeoutMs', (select setting::int from pg_settings where name = 'lock_timeout'),
     'statementTimeoutMs', (select setting::int from pg_settings where name = 'statement_timeout')
   ) as facts, to_regclass('holdpoint.__drizzle_migrations')::text as migrations, clock_timestamp() as now`,
);

const MIGRATED = statement(
  "find_newest_migration",
  "select max(created_at)::text as newest from holdpoint.__drizzle_migrations",
);

const FLEET = statement(
  "find_fleet_facts",
  // All live runs are read for it, once: only where somebody's runs may wait for a version that nobody has.
  `with live as materialized (
     select r.agent_name, r.agent_version, count(*) as live from holdpoint.runs r
     where r.tenant_id = $1::uuid and r.ended_at is null group by r.agent_name, r.agent_version
   )
   select
     (select jsonb_build_object('seenBy', l.seen_by,
        'seenAgoMs', (extract(epoch from holdpoint.clock() - l.seen_at) * 1000)::float8,
        'sinceAgoMs', (extract(epoch from holdpoint.clock() - l.since) * 1000)::float8)
      from holdpoint.lease_watch l where l.tenant_id = $1::uuid) as watch,
     (select coalesce(jsonb_agg(jsonb_build_object('id', w.id, 'host', w.host, 'pid', w.pid,
        'silent', w.lease_until < holdpoint.now(), 'skewMs', w.skew_ms, 'draining', w.drain_requested_at is not null)
        order by w.id), '[]')
      from (select * from holdpoint.workers w where w.tenant_id = $1::uuid and w.gone_at is null and w.kind = 'process'
        order by w.id limit 200) w) as workers,
     (select coalesce(jsonb_agg(jsonb_build_object('name', a.name, 'version', a.version, 'servedBy', s.served_by,
        'queued', q.queued, 'oldestQueuedMs', q.oldest, 'live', case when s.served_by = 0 then coalesce((select l.live from live l
          where l.agent_name = a.name and l.agent_version = a.version), 0) end) order by a.name, a.version), '[]')
      from holdpoint.agents a
      cross join lateral (select count(*) as served_by from holdpoint.workers w where w.tenant_id = $1::uuid
          and w.gone_at is null and w.kind = 'process' and not w.stay_down
          and w.agents @> jsonb_build_array(jsonb_build_object('name', a.name, 'version', a.version))) s
      cross join lateral (select count(*) as queued,
          (extract(epoch from holdpoint.clock() - min(r.queued_since)) * 1000)::float8 as oldest
        from holdpoint.runs r where r.tenant_id = $1::uuid and r.status = 'queued'
          and r.agent_name = a.name and r.agent_version = a.version) q
      where a.tenant_id = $1::uuid and a.kind <> 'task') as agents`,
);
