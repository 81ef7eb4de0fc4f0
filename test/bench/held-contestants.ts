import { openPublisher, type Publisher } from "@holdpoint/queue";
import {
  createSession,
  decideApproval,
  grantRoles,
  openStore,
  type Run,
  type Store,
  submitRun,
} from "@holdpoint/store";
import pg from "pg";
import { type BareQueue, openBareQueue } from "./bullmq-server.ts";
import type { Contestant } from "./contestant.ts";
import { BENCH_AGENT, product } from "./product.ts";
import type { Arena } from "./stage.ts";
import { strawMan } from "./straw-man.ts";

/** A contestant whose runs do `HELD_WORK`. */
export interface HeldContestant extends Contestant {
  /** Gives `held`: how many runs wait to be released. */
  readonly holding: string;
  openPeople(arena: Arena): Promise<People>;
}

/** Those who ask for runs and release them, one by one: each verb is followed by its wake-up, as the API does it. */
export interface People extends AsyncDisposable {
  /** Makes all ready for a run; what it gives submits and announces it. */
  prepareRun(): Promise<() => Promise<void>>;
  /** Reads what waits to be released; what it gives releases and announces one run each. */
  readRequests(): Promise<readonly (() => Promise<void>)[]>;
}

const REQUESTER = { kind: "requester", id: "bench" } as const;
const MANAGER = { kind: "approver", id: "mona" } as const;
const CONNECTIONS = 8;

/** The product: runs are submitted by `submitRun` and released by `decideApproval`. */
export const heldProduct: HeldContestant = {
  ...product,
  program: new URL("./held-worker-program.ts", import.meta.url),
  holding: "select count(*)::int as held from holdpoint.runs where status = 'waiting_approval'",
  async openPeople({ url, queue, admin }) {
    const stack = new AsyncDisposableStack();
    const store = stack.use(openStore({ url, applicationName: "bench", maxConnections: CONNECTIONS }));
    const publisher = stack.use(openPublisher(queue));
    await grantRoles(store, { grants: [{ user: MANAGER.id, role: "manager" }], by: "bench" });
    return {
      async prepareRun() {
        const { id: sessionId } = await createSession(store, REQUESTER.id);
        return () => submitAndAnnounce(store, publisher, sessionId);
      },
      async readRequests() {
        const { rows } = await admin.query<{ id: string; args_hash: string }>(
          "select id, args_hash from holdpoint.approvals where state = 'pending'",
        );
        return rows.map((row) => () => approveAndAnnounce(store, publisher, row));
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  },
};

async function submitAndAnnounce(store: Store, publisher: Publisher, sessionId: string): Promise<void> {
  const submission = { sessionId, agent: BENCH_AGENT, goal: "Do the work.", actor: REQUESTER };
  const submitted = await submitRun(store, submission);
  if (submitted.result !== "submitted") throw new Error(`A run was not submitted: ${submitted.result}`);
  await announce(publisher, submitted.run);
}

async function approveAndAnnounce(
  store: Store,
  publisher: Publisher,
  { id, args_hash: argsHash }: { readonly id: string; readonly args_hash: string },
): Promise<void> {
  const decision = { approvalId: id, decision: "approve", argsHash, note: null, actor: MANAGER } as const;
  const decided = await decideApproval(store, decision);
  if (decided.result !== "accepted") throw new Error(`A decision was not accepted: ${decided.result}`);
  await announce(publisher, decided.run);
}

async function announce(publisher: Publisher, { id, version }: Run): Promise<void> {
  const { failed, error } = await publisher.publish([{ agent: BENCH_AGENT, runId: id, version }]);
  if (failed > 0) throw new Error("A wake-up was not published", { cause: error });
}

/** The ceiling: a statement and a job for each. */
export const heldStrawMan: HeldContestant = {
  ...strawMan,
  program: new URL("./straw-held-program.ts", import.meta.url),
  holding: "select count(*)::int as held from run where status = 'waiting'",
  async openPeople({ url, queue: connection, admin }) {
    const stack = new AsyncDisposableStack();
    const pool = stack.adopt(new pg.Pool({ connectionString: url, max: CONNECTIONS }), (opened) => opened.end());
    // It may be the database's end that ends a connection which the pool has given up already.
    pool.on("error", () => undefined);
    const queue = stack.adopt(await openBareQueue(connection), (opened) => opened.close());
    return {
      prepareRun: async () => () => strawSubmit(pool, queue),
      async readRequests() {
        const { rows } = await admin.query<{ id: string }>("select id from run where status = 'waiting'");
        return rows.map(
          ({ id }) =>
            () =>
              strawRelease(pool, queue, id),
        );
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  },
};

async function strawSubmit(pool: pg.Pool, queue: BareQueue): Promise<void> {
  const { rows } = await pool.query<{ id: string }>(
    "insert into run (id, status, version) values (gen_random_uuid(), 'queued', 1) returning id",
  );
  await queue.add(rows.map(({ id }) => id));
}

async function strawRelease(pool: pg.Pool, queue: BareQueue, id: string): Promise<void> {
  const { rowCount } = await pool.query(RELEASE, [id]);
  if (rowCount !== 1) throw new Error("A run did not wait to be released");
  await queue.add([id]);
}

const RELEASE = `
with released as (
  update run set status = 'queued', version = version + 1, waiting_for = null, updated_at = clock_timestamp()
  where id = $1 and status = 'waiting' returning id, version
)
insert into transition (run_id, seq, status, event, actor) select id, version, 'queued', 'Released', 'mona' from released`;
