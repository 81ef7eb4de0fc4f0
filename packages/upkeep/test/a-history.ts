import type { Store } from "@holdpoint/store";

/** How old the runs of the history are, in days. */
const AGE_DAYS = 60;

const id = (kind: number, n: string) => `('0000000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const AT = `(holdpoint.clock() - interval '${AGE_DAYS} days' + n * interval '1 second')`;

const RUNS_A_SESSION = 10;
const SESSION = id(2, `(n / ${RUNS_A_SESSION})`);

/** Statements that write so many ended runs, ten a session, each with a message and the history of a short life. */
const STATEMENTS: readonly string[] = [
  `insert into holdpoint.agents (tenant_id, name, version, tools) values ($1, 'refunds', '1', '[]') on conflict do nothing`,
  `insert into holdpoint.sessions (tenant_id, id, requester, message_seq, created_at)
   select $1, ${id(2, "n")}, 'alice', ${RUNS_A_SESSION}, ${AT} from generate_series(0, $2::int / ${RUNS_A_SESSION}) n`,
  `insert into holdpoint.messages (tenant_id, session_id, seq, role, author, text, run_id, at)
   select $1, ${SESSION}, 1 + n % ${RUNS_A_SESSION}, 'user', 'alice', 'refund order ' || n, ${id(1, "n")}, ${AT} from generate_series(1, $2::int) n`,
  `insert into holdpoint.runs (tenant_id, id, session_id, agent_name, agent_version, requester, submitted_by, goal, input_seq,
     line, status, version, step_seq, epoch, checkpoint, outcome, ended_at, created_at, updated_at)
   select $1, ${id(1, "n")}, ${SESSION}, 'refunds', '1', 'alice', 'alice', 'refund order ' || n, 1, ${id(1, "n")},
     'completed', 3, 2, 1, '{"stepSeq": 2}', '{"kind": "succeeded"}', ${AT}, ${AT}, ${AT}
   from generate_series(1, $2::int) n`,
  `insert into holdpoint.transitions (tenant_id, run_id, seq, from_status, to_status, event, actor_kind, actor_id, epoch, at)
   select $1, ${id(1, "n")}, t.seq, t.before, t.after, t.event, 'worker', 'w', 1, ${AT}
   from generate_series(1, $2::int) n cross join (values (1, null, 'queued', 'Submitted'),
     (2, 'queued', 'running', 'Claimed'), (3, 'running', 'completed', 'Ended')) as t (seq, before, after, event)`,
  `insert into holdpoint.steps (tenant_id, run_id, seq, epoch, kind, body, at)
   select $1, ${id(1, "n")}, s.seq, 1, s.kind, s.body::jsonb, ${AT} from generate_series(1, $2::int) n
   cross join (values (1, 'note', '{"text": "some output of a tool, as long as those usually are"}'),
     (2, 'note', '{"text": "and another"}')) as s (seq, kind, body)`,
  "analyze holdpoint.runs, holdpoint.sessions, holdpoint.messages, holdpoint.transitions, holdpoint.steps",
];

/** Fills a database with the history of a fleet that has long been at work. */
export async function writeHistory(store: Store, runs: number): Promise<void> {
  const client = await store.pool.connect();
  try {
    await client.query("set statement_timeout = 0");
    for (const text of STATEMENTS) {
      const values = text.startsWith("analyze") ? [] : text.includes("$2") ? [store.tenantId, runs] : [store.tenantId];
      await client.query(text, values);
    }
  } finally {
    // Its setting goes with the connection.
    client.release(true);
  }
}
