import type { ClosedService } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import type { TroubledService } from "./load-run.ts";

/** What a caller has met at a service. */
export interface Trouble {
  readonly service: string;
  /** `throttled`: it turns everybody away for now. `unavailable`: it cannot be reached, or fails by itself. */
  readonly reason: ClosedService["reason"];
  /** How long it asks to wait, in milliseconds; null if it does not say. */
  readonly retryAfterMs: number | null;
}

/** A service of which trouble was reported since it last answered well; since when anew, where nobody tried it for an hour. */
export interface ListedService extends TroubledService {
  /** Failures in a row; those of calls that were under way when it closed are not counted. */
  readonly failures: number;
  /** Until when somebody finds out whether it is back, in milliseconds since the epoch; null: nobody does. */
  readonly probeUntilMs: number | null;
}

/** Whether a call may be sent to a service that was in trouble. */
export type Pass =
  | { readonly result: "free" }
  /** This one call finds out whether it is back. */
  | { readonly result: "probe" }
  | { readonly result: "wait"; readonly waitMs: number };

/** Failures in a row, without a success, after which a service that cannot be reached is left alone. */
export const UNAVAILABLE_AFTER = 5;

/**
 * Reports a call that a service turned away or could not answer. Throttled: it is closed at once, for as long as it asks
 * for, at least until what is there; where it does not say, from a second to five minutes by failures in a row.
 * Unavailable: it is closed after `UNAVAILABLE_AFTER` failures in a row, from five seconds to five minutes.
 */
export async function reportTrouble(
  store: Store,
  { service, reason, retryAfterMs }: Trouble,
): Promise<TroubledService & { readonly nowMs: number }> {
  const values = [store.tenantId, service, reason, retryAfterMs, UNAVAILABLE_AFTER];
  const [row] = await execute<ServiceRow & { now: Date }>(store, REPORT, values);
  if (row === undefined) throw new Error(`The trouble of service ${service} was not stored`);
  const { name, reason: known, sinceMs, untilMs } = serviceOf(row);
  return { name, reason: known, sinceMs, untilMs, nowMs: row.now.getTime() };
}

/**
 * Asks to send a call to a service that was in trouble. While it is closed nobody may; after that one may, for `probeMs`
 * milliseconds at most, and the others wait for how that ends.
 */
export async function passService(
  store: Store,
  { service, probeMs }: { readonly service: string; readonly probeMs: number },
): Promise<Pass> {
  const [passed] = await execute(store, PASS, [store.tenantId, service, probeMs]);
  if (passed !== undefined) return { result: "probe" };
  // By a statement of its own: the one that lost a race saw the row as it was before.
  const [wait] = await execute<{ wait_ms: number }>(store, WAIT, [store.tenantId, service]);
  return wait === undefined ? { result: "free" } : { result: "wait", waitMs: Math.max(1, Math.ceil(wait.wait_ms)) };
}

/** Reports that a service has answered well. What was under way when it closed does not open it before its time. */
export async function reportRecovered(store: Store, service: string): Promise<void> {
  await execute(store, RECOVERED, [store.tenantId, service]);
}

/** The services of which trouble was reported since they last answered well, by name. */
export async function listServices(store: Store): Promise<readonly ListedService[]> {
  return (await execute<ServiceRow>(store, LIST, [store.tenantId])).map(serviceOf);
}

interface ServiceRow {
  readonly name: string;
  readonly reason: ClosedService["reason"];
  readonly failures: number;
  readonly since: Date;
  readonly closed_until: Date | null;
  readonly probe_until: Date | null;
}

function serviceOf({ name, reason, failures, since, closed_until, probe_until }: ServiceRow): ListedService {
  return {
    name,
    reason,
    failures,
    sinceMs: since.getTime(),
    untilMs: closed_until?.getTime() ?? null,
    probeUntilMs: probe_until?.getTime() ?? null,
  };
}

const COLUMNS = "name, reason, failures, since, closed_until, probe_until";

/** How long a service is left alone after this many failures in a row, from `first` to five minutes. */
const backoff = (first: string, failures: string): string =>
  `least(interval '5 minutes', interval '${first}' * power(2, least(${failures}, 20)))`;

/** Until when this report closes the service, after so many failures in a row; null: it does not. */
const closes = (failures: string, wasClosed: string): string => `case
    when $3 = 'throttled' then holdpoint.clock()
      + coalesce($4::float8 * interval '1 millisecond', ${backoff("1 second", `${failures} - 1`)})
    when ${wasClosed} or ${failures} >= $5::int then holdpoint.clock()
      + greatest(${backoff("5 seconds", `greatest(0, ${failures} - $5::int)`)},
        $4::float8 * interval '1 millisecond') end`;

const IS_CLOSED = "coalesce(s.closed_until > holdpoint.clock(), false)";

/** Nobody has tried it for an hour since it opened: nobody has waited for it all that time. */
const IS_FORGOTTEN = "greatest(s.closed_until, s.probe_until, s.updated_at) < holdpoint.clock() - interval '1 hour'";

/** Calls that were under way when it closed say nothing new, but for how long it asks to be left alone. */
const REPORT = statement(
  "report_trouble",
  `insert into holdpoint.services as s (tenant_id, name, reason, failures, since, closed_until, updated_at)
   select $1::uuid, $2, $3, 1, at, ${closes("1", "false")}, at from (select holdpoint.clock() as at) now
   on conflict (tenant_id, name) do update set
     reason = case when ${IS_CLOSED} and ($3 <> 'throttled' or $4::float8 is null) then s.reason else $3 end,
     since = case when ${IS_FORGOTTEN} then holdpoint.clock() else s.since end,
     failures = s.failures + (not ${IS_CLOSED})::int,
     closed_until = case
       when ${IS_CLOSED} and ($3 <> 'throttled' or $4::float8 is null) then s.closed_until
       else greatest(s.closed_until, ${closes("(s.failures + 1)", "s.closed_until is not null")}) end,
     probe_until = case when ${IS_CLOSED} then s.probe_until end,
     updated_at = greatest(holdpoint.clock(), s.updated_at)
   returning ${COLUMNS}, holdpoint.clock() as now`,
);

const PASS = statement(
  "pass_service",
  `update holdpoint.services s set probe_until = holdpoint.clock() + $3::float8 * interval '1 millisecond',
     updated_at = greatest(holdpoint.clock(), s.updated_at)
   where s.tenant_id = $1::uuid and s.name = $2 and s.closed_until <= holdpoint.clock()
     and coalesce(s.probe_until <= holdpoint.clock(), true)
   returning s.name`,
);

const WAIT = statement(
  "service_wait",
  `select extract(epoch from greatest(s.closed_until, s.probe_until) - holdpoint.clock())::float8 * 1000 as wait_ms
   from holdpoint.services s
   where s.tenant_id = $1::uuid and s.name = $2 and s.closed_until is not null`,
);

const RECOVERED = statement(
  "report_recovered",
  `delete from holdpoint.services s
   where s.tenant_id = $1::uuid and s.name = $2 and coalesce(s.closed_until <= holdpoint.clock(), true)`,
);

const LIST = statement(
  "list_services",
  `select ${COLUMNS} from holdpoint.services where tenant_id = $1::uuid order by name`,
);
