// The world of one sequence: a tenant of its own with its sessions and runs, three worker processes, people, a sweeper.

import { type BatchReport, grantRoles, newId, openStore, type Run, registerAgent, type Store } from "@holdpoint/store";
import { moveClock, waitFor } from "@holdpoint/testkit";
import pg from "pg";
import { AGENT, MANAGER } from "../../packages/store/test/a-run.ts";
import { GRACE_MS, openCaretaker } from "./caretaker.ts";
import type { Command, Round } from "./commands.ts";
import { knownRuns, type Ledger, openLedger } from "./ledger.ts";
import { type MortalStore, openMortalStore } from "./mortal-store.ts";
import type { Dice } from "./next-work.ts";
import { openPeople } from "./people.ts";
import { startWorker, type Worker } from "./worker.ts";

export interface World extends AsyncDisposable {
  readonly tenantId: string;
  /** A store that nothing happens to, to look at what has become of it all. */
  readonly store: Store;
  readonly ledger: Ledger;
  /** Carries out what is begun together; ends when all of it has been answered, or its process is dead. */
  play(round: Round): Promise<void>;
  /** Ends all faults and all processes, and lets another finish: whatever has been done before, every run can end. */
  finish(): Promise<void>;
}

export interface WorldOptions {
  readonly url: string;
  readonly admin: pg.Client;
  readonly clock: Clock;
  readonly onBatch: (report: BatchReport) => void;
}

/** How far the database's clock has been moved, and when the last move is done: two at once would be in each other's way. */
export interface Clock {
  movedMs: number;
  moved: Promise<void>;
}

const WORKERS = 3;
const FIRST_RUNS = 18;

/** Makes a world with some runs that have been claimed and some that have not. */
export async function openWorld(options: WorldOptions): Promise<World> {
  const { url, admin } = options;
  const stack = new AsyncDisposableStack();
  const tenantId = newId();
  await admin.query(
    "insert into holdpoint.tenants (id, name, created_at, policy_revision) values ($1, $2, holdpoint.clock(), 0)",
    [tenantId, tenantId],
  );
  const store = stack.use(openStore({ url, tenantId, maxConnections: 2 }));
  await registerAgent(store, { ...AGENT, tools: [] });
  await grantRoles(store, { grants: [{ user: MANAGER.id, role: "manager" }], by: "test" });
  const ledger = openLedger();
  let named = 0;
  const names = (what: string): string => {
    named += 1;
    return `${what} ${named}`;
  };
  const open = (name: string): MortalStore =>
    stack.use(openMortalStore({ url, name: `${name} ${tenantId}`, tenantId }));
  const outside = open("outside");
  const people = openPeople({ mortal: outside, ledger, names });
  const caretaker = openCaretaker({ mortal: outside, ledger });
  const everybody: Worker[] = [];
  const start = async (): Promise<Worker> => {
    const worker = await startWorker({ mortal: open(names("worker")), ledger, onBatch: options.onBatch });
    everybody.push(worker);
    return worker;
  };
  const processes = { workers: [], ghosts: [], everybody };
  const stage: Stage = { ...options, ...processes, tenantId, ledger, people, caretaker, outside, names, start };

  await caretaker.watch();
  for (let n = 0; n < 2; n += 1) await people.openSession();
  for (let n = 0; n < FIRST_RUNS; n += 1) await people.submit(n);
  for (let n = 0; n < WORKERS; n += 1) stage.workers.push(await start());
  await Promise.all(stage.workers.map((worker, n) => worker.claim(everyThird(ledger, n))));
  return {
    tenantId,
    store,
    ledger,
    play: (round) => Promise.all(round.map((command) => carryOut(stage, command))).then(() => undefined),
    finish: () => finish(stage),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

interface Stage extends WorldOptions {
  readonly tenantId: string;
  readonly ledger: Ledger;
  readonly people: ReturnType<typeof openPeople>;
  readonly caretaker: ReturnType<typeof openCaretaker>;
  readonly outside: MortalStore;
  readonly names: (what: string) => string;
  readonly start: () => Promise<Worker>;
  readonly workers: Worker[];
  /** Processes that were taken for gone and live. */
  readonly ghosts: Worker[];
  /** All that were ever started. */
  readonly everybody: readonly Worker[];
}

function everyThird(ledger: Ledger, first: number): readonly string[] {
  return knownRuns(ledger).flatMap(({ id }, index) => (index % WORKERS === first ? [id] : []));
}

async function carryOut(stage: Stage, command: Command): Promise<void> {
  const { ledger, people, caretaker, workers } = stage;
  switch (command.do) {
    case "submit":
      return people.submit(command.session);
    case "claim": {
      const worker = pick(workers, command.worker);
      const runs = knownRuns(ledger).filter((_, n) => n % command.every === 0);
      return worker.claim(runs.map(({ id }) => id));
    }
    case "work": {
      // A process that others take for gone works on: it does not know.
      const all = command.worker < workers.length ? [pick(workers, command.worker), ...stage.ghosts] : stage.everybody;
      const dice = diceOf(command.rolls, stage.names);
      return settleAll(all.map((worker) => worker.work(command.count, dice)));
    }
    case "say":
      return people.say(runAt(ledger, command.run), command.kind);
    case "decide":
      return settleAll(knownRuns(ledger).map((run) => people.decide(run, command)));
    case "cancel":
      return people.cancel(runAt(ledger, command.run).id);
    case "pause":
      return people.pause(runAt(ledger, command.run));
    case "resume":
      return people.resume(runAt(ledger, command.run));
    case "take_over":
      return people.takeOver(runAt(ledger, command.run));
    case "mark_done":
      return people.markDone(runAt(ledger, command.run));
    case "policy":
      return people.changePolicy();
    case "sweep":
      return caretaker.sweep();
    case "wait":
      return passTime(stage);
    default:
      return disturb(stage, command);
  }
}

type Disturbance = Extract<Command, { readonly do: "hold" | "fault" | "cut" | "kill" | "mistake" }>;

async function disturb(stage: Stage, command: Disturbance): Promise<void> {
  const { caretaker, workers, ghosts } = stage;
  switch (command.do) {
    case "hold":
      return holdRow(stage, command);
    case "fault": {
      const mortal = processAt(stage, command.process);
      for (const fault of command.faults) mortal.arm(fault);
      return;
    }
    case "cut": {
      const mortal = processAt(stage, command.process);
      if (command.by === "socket") mortal.cut();
      else await stage.admin.query(TERMINATE, [mortal.name]);
      return;
    }
    case "kill": {
      const at = command.worker % workers.length;
      const killed = pick(workers, at);
      killed.mortal.die();
      workers[at] = await stage.start();
      // One that nobody has seen die is found by its lease.
      if (command.seen) await caretaker.buryWorker(killed.id);
      else await caretaker.shortenLease(killed.id);
      return;
    }
    case "mistake": {
      const at = command.worker % workers.length;
      const mistaken = pick(workers, at);
      ghosts.push(mistaken);
      workers[at] = await stage.start();
      if (command.by === "supervisor") return caretaker.buryWorker(mistaken.id);
      await caretaker.shortenLease(mistaken.id);
      // Its renewal and the judgement about it meet.
      await Promise.all([passTime(stage), caretaker.keepLease(mistaken.id)]);
      return;
    }
  }
}

/** Time in which leases and deadlines run out, and a look at what has. */
async function passTime({ url, clock, caretaker }: Stage): Promise<void> {
  clock.moved = clock.moved.then(async () => {
    await caretaker.watch();
    clock.movedMs += GRACE_MS + GRACE_MS / 2;
    await moveClock(url, clock.movedMs);
    await caretaker.sweep();
  });
  await clock.moved;
}

/** A row is locked by somebody for as long as some round trips take, while others want it. */
async function holdRow({ url, ledger }: Stage, command: Extract<Command, { do: "hold" }>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("begin");
    if (command.row === "run") {
      const { id } = runAt(ledger, command.index);
      await client.query("select from holdpoint.runs where id = $1 for update", [id]);
    } else {
      const id = pick(ledger.sessions, command.index);
      await client.query("select from holdpoint.sessions where id = $1 for update", [id]);
    }
    for (let trips = 0; trips < command.trips; trips += 1) await client.query("select 1");
    await client.query("commit");
  } finally {
    await client.end();
  }
}

/** Rounds in which a process alone must bring every run to its end. */
const LAST_ROUNDS = 40;

async function finish(stage: Stage): Promise<void> {
  const { admin, caretaker, everybody, outside, people } = stage;
  for (const { mortal } of everybody) mortal.die();
  await untilQuiet(admin);
  outside.disarm();
  for (const { id } of everybody) await caretaker.buryWorker(id);
  await caretaker.sweep();
  // What a sequence has not stopped is stopped now: only then does the end of all come soon.
  const runIds = await allRuns(stage);
  for (const runId of runIds) await people.cancel(runId);
  const finisher = await stage.start();
  const dice: Dice = { chance: () => 0, names: stage.names, isFinishing: true };
  for (let round = 0; round < LAST_ROUNDS; round += 1) {
    await finisher.claim(runIds);
    if (finisher.owned() === 0) break;
    await finisher.work(3, dice);
  }
  await caretaker.sweep();
}

/** All runs that are there, also one whose submission nobody was told of. */
async function allRuns({ admin, tenantId }: Stage): Promise<readonly string[]> {
  const { rows } = await admin.query<{ id: string }>("select id from holdpoint.runs where tenant_id = $1", [tenantId]);
  return rows.map(({ id }) => id);
}

/** What dead processes have left under way on the server ends by itself. */
async function untilQuiet(admin: pg.Client): Promise<void> {
  const quiet = async (): Promise<boolean> => (await admin.query(WORKING)).rowCount === 0;
  await waitFor(quiet, { deadlineMs: 10_000, what: "the statements of dead processes to end" });
}

const WORKING = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
  and backend_type = 'client backend' and state <> 'idle'`;

const TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";

function diceOf(rolls: readonly number[], names: (what: string) => string): Dice {
  let thrown = 0;
  const chance = (below: number): number => {
    // The rolls go round, each time on a little, so that a short list does not repeat itself.
    const roll = (rolls[thrown % rolls.length] ?? 0) + 7 * Math.floor(thrown / rolls.length);
    thrown += 1;
    return roll % below;
  };
  return { chance, names, isFinishing: false };
}

function processAt({ workers, ghosts, outside }: Stage, index: number): MortalStore {
  return pick([...[...workers, ...ghosts].map(({ mortal }) => mortal), outside], index);
}

function runAt(ledger: Ledger, index: number): Run {
  return pick(knownRuns(ledger), index);
}

function pick<Item>(list: readonly Item[], index: number): Item {
  const item = list[index % list.length];
  if (item === undefined) throw new Error("there is nothing to choose from");
  return item;
}

function settleAll(work: readonly Promise<unknown>[]): Promise<void> {
  return Promise.all(work).then(() => undefined);
}
