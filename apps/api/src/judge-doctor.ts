import type { Check } from "@holdpoint/protocol";
import { showId } from "@holdpoint/store";
import type { FleetFacts, ServerFacts } from "@holdpoint/store/read";

/** All that the checks are made from. */
export interface DoctorFacts {
  readonly server: ServerFacts;
  /** Null: the schema is older than this program. */
  readonly fleet: FleetFacts | null;
  /** How far this process's clock is ahead of the database's, in milliseconds. */
  readonly apiSkewMs: number;
  /** A write went to the queue and back. */
  readonly queueWorks: boolean;
  /** How many wake-ups wait for an agent that has runs queued; null: the queue did not say in time. */
  readonly waiting: readonly { readonly agent: string; readonly waiting: number | null }[];
}

const OLDEST_VERSION = 150_000;
/** Clocks that differ by less are alike: the message's way is in it. */
const SKEW_MS = 2_000;
/** Signed reports of providers are taken within five minutes. */
const FAR_OFF_MS = 240_000;
const SWEEPER_LATE_MS = 15_000;
const SWEEPER_AWAY_MS = 60_000;
/** A run that is queued for longer has been published anew several times. */
const QUEUED_LONG_MS = 30_000;
/** So many more wake-ups than queued runs are no remainder of what was repaired. */
const TOO_MANY_WAKE_UPS = 1_000;
const NAMED = 5;

/** Judges everything that was looked at; the same facts give the same checks, in the same order. */
export function judgeDoctor(facts: DoctorFacts): readonly Check[] {
  const { server, fleet } = facts;
  return [
    judgeVersion(server),
    judgePrimary(server),
    judgeMigrations(server),
    judgeDisk(server),
    judgeCommits(server),
    judgeStandby(server),
    judgeTimeouts(server),
    judgeConnections(server),
    judgeApiClock(facts),
    ...(fleet === null
      ? []
      : [judgeWorkerClocks(fleet), judgeSweepers(fleet), judgeWorkers(fleet), judgeVersions(fleet)]),
    judgeQueue(facts),
    ...(fleet === null ? [] : [judgeDrift(facts, fleet)]),
  ];
}

const ORDER = ["ok", "warn", "fail"] as const;

/** The worst of all results. */
export function worstOf(checks: readonly Check[]): Check["result"] {
  return ORDER[Math.max(0, ...checks.map(({ result }) => ORDER.indexOf(result)))] ?? "ok";
}

const ok = (name: string, text: string): Check => ({ name, result: "ok", text, todo: null });
const warn = (name: string, text: string, todo: string): Check => ({ name, result: "warn", text, todo });
const fail = (name: string, text: string, todo: string): Check => ({ name, result: "fail", text, todo });

function judgeVersion({ version, versionNumber }: ServerFacts): Check {
  return versionNumber >= OLDEST_VERSION
    ? ok("database version", `Postgres ${version}`)
    : fail("database version", `Postgres ${version}`, "Use Postgres 15 or newer.");
}

function judgePrimary({ inRecovery }: ServerFacts): Check {
  return inRecovery
    ? fail("primary", "the database is a standby and takes no writes", "Point HOLDPOINT_DATABASE_URL to the primary.")
    : ok("primary", "the database takes writes");
}

function judgeMigrations({ migratedTo, newestMigration }: ServerFacts): Check {
  const name = "migrations";
  if (migratedTo === null) return fail(name, "the schema is not there", "Run holdpoint migrate.");
  if (migratedTo < newestMigration)
    return fail(name, "the schema is older than this program", "Run holdpoint migrate.");
  return migratedTo === newestMigration
    ? ok(name, "the schema is up to date")
    : warn(name, "the schema is newer than this program", "Update this process to the version that has migrated it.");
}

function judgeDisk({ fsync, fullPageWrites }: ServerFacts): Check {
  const name = "writes to disk";
  const todo = "Set it to on, and start the server anew.";
  if (!fsync) return fail(name, "fsync is off: a power cut loses commits, and with them what was sent", todo);
  return fullPageWrites ? ok(name, "fsync and full_page_writes are on") : warn(name, "full_page_writes is off", todo);
}

function judgeCommits({ synchronousCommit, synchronousStandbyNames }: ServerFacts): Check {
  const name = "synchronous_commit";
  if (synchronousCommit === "off") {
    return fail(name, "off: a crash loses the last commits, and an effect may be made again", "Set it to on.");
  }
  const isLocal = synchronousCommit === "local" && synchronousStandbyNames !== "";
  return isLocal
    ? warn(name, "local: a failover loses commits that the standby has not seen", "Set it to on.")
    : ok(name, synchronousCommit);
}

function judgeStandby({ standbys, synchronousStandbys, synchronousStandbyNames }: ServerFacts): Check {
  const name = "standbys";
  if (standbys === 0 && synchronousStandbyNames === "") return ok(name, "none; a lost server is a lost database");
  if (synchronousStandbyNames === "") {
    return warn(
      name,
      `${standbys}, none of them synchronous: after a failover an effect may be made again`,
      "Name one in synchronous_standby_names.",
    );
  }
  if (synchronousStandbys === null) {
    return warn(name, "this role may not see whether one is synchronous", "Grant it pg_monitor.");
  }
  return synchronousStandbys > 0
    ? ok(name, `${synchronousStandbys} synchronous of ${standbys}`)
    : fail(name, "a synchronous one is asked for and none is connected: commits wait", "Bring it back.");
}

function judgeTimeouts({ lockTimeoutMs, statementTimeoutMs }: ServerFacts): Check {
  const name = "time limits of statements";
  return lockTimeoutMs > 0 && statementTimeoutMs > 0
    ? ok(name, `lock_timeout ${lockTimeoutMs} ms, statement_timeout ${statementTimeoutMs} ms`)
    : warn(
        name,
        "lock_timeout or statement_timeout is not set: one stuck statement holds up others without end",
        "Give the role both (alter role … set lock_timeout = '1s', statement_timeout = '10s'); a pooler takes no settings.",
      );
}

function judgeConnections({ connections, maxConnections }: ServerFacts): Check {
  const text = `${connections} of ${maxConnections} in use`;
  return connections < maxConnections * 0.8
    ? ok("connections", text)
    : warn("connections", text, "Raise max_connections, or use a pooler; without a free one nobody can renew a lease.");
}

function judgeApiClock({ apiSkewMs }: DoctorFacts): Check {
  const name = "clock of the api";
  const text = inWords(apiSkewMs);
  if (Math.abs(apiSkewMs) < SKEW_MS) return ok(name, text);
  const todo = "Set the clocks of both machines by NTP. Runs go by the database's clock; signed reports by the api's.";
  return Math.abs(apiSkewMs) < FAR_OFF_MS ? warn(name, text, todo) : fail(name, text, todo);
}

function judgeWorkerClocks({ workers }: FleetFacts): Check {
  const name = "clocks of the workers";
  const off = workers.filter(({ skewMs }) => skewMs !== null && Math.abs(skewMs) >= SKEW_MS);
  if (off.length === 0) return ok(name, "none is off by 2 s or more");
  const who = off.map(({ host, pid, skewMs }) => `${host}:${pid} ${inWords(skewMs ?? 0)}`);
  return warn(name, list(who), "Set their clocks by NTP. Their leases are not touched by it; their logs are.");
}

function judgeSweepers({ watch }: FleetFacts): Check {
  const name = "sweepers";
  const todo = "Start a sweeper (holdpoint sweeper): without one no deadline passes and no run is taken over.";
  if (watch === null) return fail(name, "none has ever looked", todo);
  const { seenBy, seenAgoMs, sinceAgoMs } = watch;
  const last = `${seenBy} looked ${seconds(seenAgoMs)} ago`;
  if (seenAgoMs >= SWEEPER_AWAY_MS) return fail(name, last, todo);
  if (seenAgoMs >= SWEEPER_LATE_MS)
    return warn(name, last, "Look at the sweeper's log: its passes take long, or fail.");
  return ok(name, `${last}; the leases are watched without a gap for ${seconds(sinceAgoMs)}`);
}

function judgeWorkers({ workers, agents }: FleetFacts): Check {
  const name = "workers";
  const queued = agents.reduce((sum, agent) => sum + agent.queued, 0);
  if (workers.length === 0) {
    const text = `none lives, ${queued} runs are queued`;
    const todo = "Start a worker (holdpoint worker --agents <module>).";
    return queued === 0 ? warn(name, text, todo) : fail(name, text, todo);
  }
  const silent = workers.filter(({ silent: isSilent }) => isSilent);
  if (silent.length === 0) return ok(name, `${workers.length} live, all of them heard of`);
  const who = list(silent.map(({ id, host, pid }) => `${showId("worker", id)} (${host}:${pid})`));
  return warn(
    name,
    `${silent.length} of ${workers.length} have not renewed their lease: ${who}`,
    "Look at them (holdpoint workers plan-restart <worker>); after their grace their runs go to others.",
  );
}

/** Runs stay with the version that they were submitted with: a version that is gone is a run that nobody takes up. */
function judgeVersions({ agents }: FleetFacts): Check {
  const name = "versions";
  const unserved = agents.filter(({ servedBy, live }) => servedBy === 0 && (live ?? 0) > 0);
  if (unserved.length === 0) return ok(name, "every run that has not ended has a worker with its version");
  const text = list(
    unserved.map(({ name: agent, version, live, queued }) => `${agent}@${version} (${live} runs, ${queued} queued)`),
  );
  const todo = "Start a worker with these versions, until their runs have ended.";
  return unserved.some(({ queued }) => queued > 0)
    ? fail(name, `no worker has ${text}`, todo)
    : warn(name, `no worker has ${text}`, todo);
}

function judgeQueue({ queueWorks }: DoctorFacts): Check {
  return queueWorks
    ? ok("queue", "a write goes there and back")
    : warn("queue", "it did not take a write in time", "Start it: until then runs start late; nothing is lost.");
}

function judgeDrift({ waiting }: DoctorFacts, { agents }: FleetFacts): Check {
  const name = "queue drift";
  const found = waiting.flatMap(({ agent, waiting: jobs }) => {
    const rows = agents.find((each) => `${each.name}@${each.version}` === agent);
    return rows === undefined || jobs === null ? [] : driftOf(agent, { jobs, rows });
  });
  if (found.length > 0) return warn(name, list(found), "The sweeper publishes them again; look whether one runs.");
  const unknown = waiting.filter(({ waiting: jobs }) => jobs === null).length;
  return unknown === 0
    ? ok(name, "wake-ups and queued runs agree")
    : warn(name, `${unknown} queues did not say how long they are`, "Look at the queue's server.");
}

function driftOf(
  agent: string,
  { jobs, rows }: { readonly jobs: number; readonly rows: FleetFacts["agents"][number] },
): readonly string[] {
  const isOld = (rows.oldestQueuedMs ?? 0) > QUEUED_LONG_MS;
  if (jobs === 0 && isOld && rows.servedBy > 0) return [`${agent}: ${rows.queued} runs queued, no wake-up for them`];
  return jobs > rows.queued + TOO_MANY_WAKE_UPS ? [`${agent}: ${jobs} wake-ups for ${rows.queued} queued runs`] : [];
}

function inWords(skewMs: number): string {
  const off = Math.round(Math.abs(skewMs));
  if (off < SKEW_MS) return "the same as the database's";
  return `${off} ms ${skewMs > 0 ? "ahead of" : "behind"} the database's`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

function list(items: readonly string[]): string {
  const shown = items.slice(0, NAMED).join(", ");
  return items.length > NAMED ? `${shown} and ${items.length - NAMED} more` : shown;
}
