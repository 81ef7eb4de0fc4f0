// The story in chapters. Everything that it says is read from the running system, and every claim is checked.

import type { Client } from "@holdpoint/client";
import type { Approval, Run } from "@holdpoint/protocol";
import { askForRefund, pendingApproval } from "./ask.ts";
import { measureCpu, sumCpu, WINDOW_MS } from "./cpu-time.ts";
import { playEditedApproval } from "./edited-approval.ts";
import type { Follower } from "./follow.ts";
import { inWords, money } from "./in-words.ts";
import { lastOwner, untilGone } from "./kill.ts";
import { playKilledWorkflow } from "./killed-workflow.ts";
import { DIRECTOR } from "./narrator.ts";
import { refusalOf } from "./refusal.ts";
import { AGENT, ORDER, type Stage } from "./stage.ts";
import { playTwoPeople } from "./two-people.ts";
import { until } from "./until.ts";

/** What the end of the story is judged by. */
export interface Told {
  readonly run: Run;
  readonly follower: Follower;
  readonly approval: Approval;
}

const LIMIT_MS = 60_000;
/**
 * Noise: what timers, lease renewals and the queue's idle look cost all worker processes together, in one second. A
 * process that works on something uses hundreds of milliseconds.
 */
const NOISE_MS = 50;
const CPU_WINDOWS = 3;

/** Plays the whole story. @throws {Error} something is not as the story claims. */
export async function playStory(stage: Stage): Promise<Told> {
  const pids = await workerPids(stage);
  const beforeMs = sumCpu(pids);
  stage.narrator.chapter("A customer asks; the agent looks up, quotes, and holds for a manager");
  const { follower, run } = await askForRefund(stage, ORDER, { briefly: false });
  const approval = await pendingApproval(stage.people.mona, run, stage);
  await showThatNobodyWorks(stage, run, { pids, workedMs: sumCpu(pids) - beforeMs });
  await killTheIdleWorker(stage, run);
  await killTheSender(stage, { run, approval, follower });
  const ended = await finish(stage, follower);
  await comeTooLate(stage, { run: ended, approval, follower });
  await playTwoPeople(stage);
  await playEditedApproval(stage);
  await playKilledWorkflow(stage);
  return { run: ended, follower, approval };
}

interface CpuBefore {
  /** The worker processes: supervisors and those that they have started. */
  readonly pids: readonly number[];
  /** What they used while the run was being worked on. */
  readonly workedMs: number;
}

async function showThatNobodyWorks(stage: Stage, run: Run, { pids, workedMs }: CpuBefore): Promise<void> {
  const { people, queue, narrator, signal } = stage;
  narrator.chapter("Nobody works while it waits");
  const cpuMs = await quietest(pids, signal);
  const { items: workers } = await people.olga.listWorkers({}, { signal });
  const owned = workers.reduce((total, { ownedRuns }) => total + ownedRuns, 0);
  const { items: live } = await people.olga.listRuns({ limit: 100 }, { signal });
  const waiting = await queue.waiting(AGENT);
  const after = await people.olga.showRun({ runId: run.id }, { signal });
  narrator.claim(
    `no claim: no run has an owner; the ${workers.length} workers own ${owned} runs`,
    owned === 0 && live.every(({ owner }) => owner === null),
  );
  narrator.claim(`no job: ${waiting} wake-ups wait in the queue`, waiting === 0);
  narrator.claim(
    `no work: in ${WINDOW_MS / 1_000} s all ${pids.length} worker processes together used ${ms(cpuMs)} of CPU; up to ${ms(NOISE_MS)} is noise (leases, queue); the work before took ${ms(workedMs)}`,
    cpuMs <= NOISE_MS && workedMs > cpuMs,
  );
  narrator.claim(
    `no change: the run is at version ${after.version} and step ${after.stepSeq}, as before`,
    after.version === run.version && after.stepSeq === run.stepSeq,
  );
}

/** The quietest of some windows: a garbage collection, or a lease that is just being renewed, is no work on a run. */
async function quietest(pids: readonly number[], signal: AbortSignal): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let window = 0; window < CPU_WINDOWS && leastMs > NOISE_MS; window += 1) {
    leastMs = Math.min(leastMs, await measureCpu(pids, signal));
  }
  return leastMs;
}

async function killTheIdleWorker(stage: Stage, run: Run): Promise<void> {
  const { people, narrator, signal } = stage;
  narrator.chapter("The worker that did all this is killed");
  const hand = await lastOwner(stage, run);
  narrator.does(
    DIRECTOR,
    `SIGKILL to ${hand.part.name}: its supervisor (${hand.part.pid}) and its working process ${hand.name} (${hand.pid})`,
  );
  hand.part.kill();
  await hand.part.ended;
  await untilGone(stage, hand);
  const after = await people.alice.showRun({ runId: run.id }, { signal });
  narrator.claim(
    `the run does not notice: still ${after.status}, version ${after.version}; all it needs is in Postgres`,
    after.status === run.status && after.version === run.version,
  );
}

interface Waiting {
  readonly run: Run;
  readonly approval: Approval;
  readonly follower: Follower;
}

async function killTheSender(stage: Stage, { run, approval, follower }: Waiting): Promise<void> {
  const { people, sandbox, crew, narrator, signal } = stage;
  narrator.chapter("The manager approves; the next worker is killed with the refund on its way");
  await sandbox.holdNextReply(ORDER.paymentIntent);
  narrator.does(DIRECTOR, "has the payment sandbox move the money, but keep its next reply back");
  narrator.does("mona", `reads what will run: ${approval.tool} with ${inWords(approval.args)}`);
  narrator.does("mona", `approves exactly this, by its hash ${approval.argsHash.slice(0, 12)}…`);
  const decision = {
    approvalId: approval.id,
    decision: "approve",
    argsHash: approval.argsHash,
    note: "Known fault",
  } as const;
  await people.mona.decideApproval(decision, { signal });
  const sending = await follower.untilRun("a worker to send the refund", ({ openAttempts }) => openAttempts === 1);
  await until(async () => ((await sandbox.heldReplies()).length === 1 ? true : null), {
    what: "the refund to arrive at the payment sandbox",
    limitMs: LIMIT_MS,
    signal,
  });
  await follower.catchUp();
  const [row, ...others] = await sandbox.ledger();
  if (row === undefined) throw new Error("the sandbox holds a reply back, but its ledger has no refund");
  narrator.claim(
    `the money has moved: ledger row ${row.seq}, ${row.refund}, ${money(row.amount, row.currency)}; its reply is held back`,
    row.payment_intent === ORDER.paymentIntent && others.length === 0,
  );
  const owner = sending.owner;
  if (owner === null) throw new Error("the refund was sent, but the run has no owner");
  const hand = await crew.find(owner.workerId);
  narrator.claim(
    `no result is stored: the run has ${sending.openAttempts} open attempt, owned by ${hand.name}`,
    sending.openAttempts === 1,
  );
  narrator.does(DIRECTOR, `SIGKILL to the working process ${hand.name} (${hand.pid})`);
  process.kill(hand.pid, "SIGKILL");
  await untilGone(stage, hand);
  const { openAttempts, endedAt } = await people.alice.showRun({ runId: run.id }, { signal });
  narrator.claim(
    `it is gone; what it left behind, ${openAttempts} open attempt, is in Postgres`,
    openAttempts === 1 && endedAt === null,
  );
}

async function finish({ narrator }: Stage, follower: Follower): Promise<Run> {
  narrator.chapter("The next process finds the open attempt, looks it up, and does not pay again");
  const run = await follower.untilRun("the run to end", ({ endedAt }) => endedAt !== null);
  narrator.quote(run.sentence);
  narrator.claim("it has ended with success", run.status === "completed" && run.outcome?.kind === "succeeded");
  return run;
}

async function comeTooLate(
  { people, crew, narrator, signal }: Stage,
  { run, approval, follower }: Waiting,
): Promise<void> {
  narrator.chapter("Two come too late: each is refused, and recorded");
  const { id: approvalId, argsHash } = approval;
  const decide = (max: Client) => max.decideApproval({ approvalId, decision: "approve", argsHash }, { signal });
  narrator.does("max", `approves as well, and is told: ${await refusalOf(decide(people.max), crew)}`);
  narrator.does(
    "alice",
    `cancels, and is told: ${await refusalOf(people.alice.cancelRun({ runId: run.id }, { signal }), crew)}`,
  );
  const timeline = await follower.catchUp();
  const refused = timeline.filter(({ kind }) => kind === "refusal");
  const after = await people.alice.showRun({ runId: run.id }, { signal });
  narrator.claim(
    `the run's timeline has ${refused.length} refusals, and the run is unchanged at version ${after.version}`,
    refused.length === 2 && after.version === run.version,
  );
}

async function workerPids({ fleet, crew }: Stage): Promise<readonly number[]> {
  return [...fleet.workers, ...(await crew.hands())].map(({ pid }) => pid);
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}
