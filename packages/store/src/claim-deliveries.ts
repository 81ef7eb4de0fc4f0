import type { AgentRef, Outcome, Status, WaitingFor } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";

/** What a webhook is told of one version of a run: never what was asked, called or achieved in detail. */
export interface Notice {
  readonly runId: string;
  readonly parent: string | null;
  readonly agent: AgentRef;
  readonly status: Status;
  readonly outcome: Outcome["kind"] | null;
  readonly reason: string | null;
  readonly waitingFor: Pick<WaitingFor, "kind" | "principal"> | null;
  readonly version: number;
  /** When it came to that, in milliseconds since the epoch on the database's clock. */
  readonly atMs: number;
}

/** A delivery that is the caller's to send, until its lease is over. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly url: string;
  readonly secret: string;
  /** Its number, 1 for the first. */
  readonly attempt: number;
  readonly notice: Notice;
  /** The present on the database's clock. */
  readonly nowMs: number;
}

/** How many a sender takes at once. */
export interface SendingRoom {
  /** In all. */
  readonly limit: number;
  /** For one webhook, those that it is sending already included. */
  readonly perWebhook: number;
  /** What it is sending already, by webhook. */
  readonly sending: ReadonlyMap<string, number>;
  /** After this time another sender takes what this one has not reported on, in milliseconds. */
  readonly leaseMs: number;
}

/**
 * Takes deliveries that are due. Of one run and webhook the earliest comes first: a later one waits until that is
 * delivered, dead or dismissed. One that has to wait is put off until the one before it is due again, a lease at least;
 * whoever settles that makes it due at once.
 */
export async function claimDeliveries(store: Store, room: SendingRoom): Promise<readonly ClaimedDelivery[]> {
  const values = [
    store.tenantId,
    room.limit,
    room.perWebhook,
    [...room.sending.keys()],
    [...room.sending.values()],
    room.leaseMs,
  ];
  const rows = await execute<ClaimedRow>(store, CLAIM, values);
  return rows.map(({ webhook_id, run_id, notice, created_at, now, outcome, status, version, ...row }) => ({
    ...row,
    webhookId: webhook_id,
    notice: { ...notice, runId: run_id, status, outcome, version, atMs: created_at.getTime() },
    nowMs: now.getTime(),
  }));
}

interface ClaimedRow extends Pick<ClaimedDelivery, "id" | "url" | "secret" | "attempt"> {
  readonly webhook_id: string;
  readonly run_id: string;
  readonly version: number;
  readonly status: Status;
  readonly outcome: Outcome["kind"] | null;
  readonly notice: Pick<Notice, "agent" | "parent" | "reason" | "waitingFor">;
  readonly created_at: Date;
  readonly now: Date;
}

/** How many of one webhook are looked at: more than are sent, since some of them wait for others. */
const LOOKED_AT = 100;

/** For how long one that has to wait is not looked at again, at most: nobody may have told it that its turn has come. */
const LONGEST_WAIT = "interval '5 minutes'";

const CLAIM = statement(
  "claim_deliveries",
  `
with webhook as materialized (
  select w.id, w.url, w.secret, $3::int - coalesce(s.n, 0) as room
  from holdpoint.webhooks w left join unnest($4::uuid[], $5::int[]) as s (id, n) on s.id = w.id
  where w.tenant_id = $1::uuid and w.disabled_at is null and coalesce(s.n, 0) < $3::int
),
locked as materialized (
  select d.* from webhook w cross join lateral (
    select o.id, o.webhook_id, o.run_id, o.version, o.next_at from holdpoint.deliveries o
    where o.webhook_id = w.id and o.state = 'pending' and o.next_at <= holdpoint.now()
    order by o.next_at, o.version limit ${LOOKED_AT} for update skip locked) d
),
-- A later version is never stored before an earlier one, so none that comes first is missing here.
judged as materialized (
  select l.*, before.next_at as after from locked l left join lateral (
    select e.next_at from holdpoint.deliveries e
    where e.run_id = l.run_id and e.webhook_id = l.webhook_id and e.version < l.version and e.state = 'pending'
    order by e.version limit 1) before on true
),
put_off as (
  update holdpoint.deliveries d
  set next_at = least(greatest(j.after, holdpoint.clock() + $6::float8 * interval '1 millisecond'),
    holdpoint.clock() + ${LONGEST_WAIT})
  from judged j where d.id = j.id and j.after is not null
),
chosen as materialized (
  select r.id from (
    select j.id, j.next_at, row_number() over (partition by j.webhook_id order by j.next_at, j.version) as place, w.room
    from judged j join webhook w on w.id = j.webhook_id where j.after is null) r
  where r.place <= r.room order by r.next_at limit $2::int
),
claimed as (
  update holdpoint.deliveries d
  set attempts = d.attempts + 1, next_at = holdpoint.clock() + $6::float8 * interval '1 millisecond'
  from chosen c where d.id = c.id
  returning d.*
)
select c.id, c.webhook_id, w.url, w.secret, c.attempts as attempt, c.run_id, c.version, c.status, c.outcome, c.notice,
  c.created_at, holdpoint.clock() as now
from claimed c join webhook w on w.id = c.webhook_id
order by c.created_at, c.id`,
);
