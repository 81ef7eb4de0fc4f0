// What is really there, of one tenant.

import type { StepBody } from "@holdpoint/core";
import type pg from "pg";

export interface StoredRun {
  readonly id: string;
  readonly goal: string;
  readonly status: string;
  readonly version: number;
  readonly step_seq: number;
  readonly cancel_requested: boolean;
  readonly ended: boolean;
}

export interface StoredStep {
  readonly run_id: string;
  readonly seq: number;
  readonly epoch: number;
  readonly body: StepBody;
}

export interface StoredTransition {
  readonly run_id: string;
  readonly seq: number;
  readonly event: string;
  readonly to_status: string;
  readonly actor_id: string;
  readonly epoch: number;
  readonly reason: string | null;
}

export interface StoredAttempt {
  readonly id: string;
  readonly run_id: string;
  readonly call_id: string;
  readonly number: number;
  readonly worker: string;
  readonly epoch: number;
  readonly outcome: string | null;
}

export interface StoredMessage {
  readonly session_id: string;
  readonly seq: number;
  readonly text: string;
}

export interface Stored {
  readonly runs: readonly StoredRun[];
  readonly steps: readonly StoredStep[];
  readonly transitions: readonly StoredTransition[];
  readonly attempts: readonly StoredAttempt[];
  readonly messages: readonly StoredMessage[];
  readonly sessions: readonly { readonly id: string; readonly message_seq: number }[];
  readonly calls: readonly { readonly id: string; readonly run_id: string }[];
  readonly facts: readonly {
    readonly run_id: string;
    readonly id: string;
    readonly text: string | null;
    readonly read_in_step: number | null;
  }[];
  readonly decisions: readonly { readonly approval_id: string; readonly actor_id: string }[];
}

/** Reads all of a tenant. */
export async function readDatabase(admin: pg.Client, tenantId: string): Promise<Stored> {
  const read = async <Row extends pg.QueryResultRow>(text: string): Promise<readonly Row[]> =>
    (await admin.query<Row>(text, [tenantId])).rows;
  return {
    runs: await read(`select id, goal, status, version, step_seq, cancel_requested_at is not null as cancel_requested,
      ended_at is not null as ended from holdpoint.runs where tenant_id = $1`),
    steps: await read("select run_id, seq, epoch, body from holdpoint.steps where tenant_id = $1 order by run_id, seq"),
    transitions: await read(`select run_id, seq, event, to_status, actor_id, epoch, reason from holdpoint.transitions
      where tenant_id = $1 order by run_id, seq`),
    attempts: await read(
      "select id, run_id, call_id, number, worker, epoch, outcome from holdpoint.attempts where tenant_id = $1",
    ),
    messages: await read(
      "select session_id, seq, text from holdpoint.messages where tenant_id = $1 order by session_id, seq",
    ),
    sessions: await read("select id, message_seq from holdpoint.sessions where tenant_id = $1"),
    calls: await read("select id, run_id from holdpoint.all_calls where tenant_id = $1"),
    facts: await read(
      "select run_id, id, body->>'text' as text, read_in_step from holdpoint.inbox where tenant_id = $1",
    ),
    decisions: await read("select approval_id, actor_id from holdpoint.decisions where tenant_id = $1"),
  };
}
