// One worker process: what it has claimed, what it knows of that, and its commits through a group of its own.

import type { StepBody } from "@holdpoint/core";
import {
  type BatchReport,
  type CommitGroup,
  claimRuns,
  failureKind,
  findOwnRuns,
  isUnloaded,
  type LoadedRun,
  loadRun,
  type Move,
  newId,
  openCommitGroup,
  type Run,
  recordLateEvidence,
  registerWorker,
  type StepCommit,
} from "@holdpoint/store";
import { AGENT } from "../../packages/store/test/a-run.ts";
import { aResult } from "../../packages/store/test/a-status.ts";
import { type Answer, type Ledger, note, noteSeen, noteSteps, type Sent, type Taken } from "./ledger.ts";
import type { MortalStore } from "./mortal-store.ts";
import { afterTaken, type Dice, hasResult, nextWork, type Work } from "./next-work.ts";

export interface Worker {
  readonly id: string;
  readonly mortal: MortalStore;
  /** Claims what it can of these runs. */
  claim(runIds: readonly string[]): Promise<void>;
  /** Does so much in a row on each of its runs, all at once; ends when all is answered, or when the process dies. */
  work(count: number, dice: Dice): Promise<void>;
  /** How many runs it believes to be its own. */
  owned(): number;
}

export interface WorkerOptions {
  readonly mortal: MortalStore;
  readonly ledger: Ledger;
  readonly onBatch: (report: BatchReport) => void;
}

/** Longer than all that these sequences move the clock by, so that a lease runs out only where a sequence says so. */
export const LEASE_MS = 86_400_000;

/** Starts a worker process. */
export async function startWorker({ mortal, ledger, onBatch }: WorkerOptions): Promise<Worker> {
  const id = newId();
  const { store } = mortal;
  await registerWorker(store, { id, host: "model", pid: 1, agents: [AGENT], slots: 100, leaseMs: LEASE_MS });
  const group = openCommitGroup(store, { onBatch });
  const process: Process = { id, mortal, ledger, group, known: new Map(), doubtful: new Set() };
  const untilDeath = (work: Promise<unknown>): Promise<void> => Promise.race([work.then(() => undefined), mortal.died]);
  return {
    id,
    mortal,
    claim: (runIds) => untilDeath(claim(process, runIds)),
    work: (count, dice) => untilDeath(workOnAll(process, count, dice)),
    owned: () => process.known.size,
  };
}

interface Process {
  readonly id: string;
  readonly mortal: MortalStore;
  readonly ledger: Ledger;
  readonly group: CommitGroup;
  readonly known: Map<string, LoadedRun>;
  /** Runs that may be its own without its knowing: an answer was lost. */
  readonly doubtful: Set<string>;
}

async function claim(process: Process, runIds: readonly string[]): Promise<void> {
  const { id: workerId, mortal, ledger, known, doubtful } = process;
  const free = runIds.filter((runId) => !known.has(runId));
  const sent = note(ledger.claims, workerId, {
    workerId,
    runIds: free,
    knownSteps: new Map(ledger.knownSteps),
    knownFacts: ledger.facts.filter(({ answers }) => answers[0]?.says === "yes").map(({ what }) => what.text),
  });
  const isProof = proofOf(mortal);
  sent.sends += 1;
  const claimed = await claimRuns(mortal.store, {
    runIds: free,
    workerId,
    progressMs: 600_000,
    mayTakeSuspect: true,
  }).catch((error: unknown) => {
    expectFailure(ledger, error);
    return null;
  });
  if (claimed === null) {
    for (const runId of free) doubtful.add(runId);
    sent.answers.push({ says: "unknown", why: "connection" });
    return;
  }
  sent.answers.push({ says: "yes", of: claimed.flatMap((each) => (isUnloaded(each) ? [] : [each])) });
  // What was loaded is what was loaded; what else was claimed is not known.
  if (!isProof()) sent.answers.push({ says: "unknown", why: "connection" });
  for (const each of claimed) {
    if (isUnloaded(each)) {
      expectFailure(ledger, each.error);
      doubtful.add(each.runId);
    } else {
      noteSeen(ledger, each.run);
      noteSteps(ledger, each.run.id, each.run.stepSeq);
      known.set(each.run.id, each);
    }
  }
}

async function workOnAll(process: Process, count: number, dice: Dice): Promise<void> {
  await findDoubtful(process);
  await Promise.all(
    [...process.known.keys()].map(async (runId) => {
      for (let done = 0; done < count; done += 1) {
        const known = process.known.get(runId);
        if (known === undefined) return;
        await act(process, known, dice);
      }
    }),
  );
}

/** Asks for runs whose claim, or whose last answer, was lost. */
async function findDoubtful({ id: workerId, mortal, ledger, known, doubtful }: Process): Promise<void> {
  if (doubtful.size === 0) return;
  try {
    const own = await findOwnRuns(mortal.store, { workerId, runIds: [...doubtful] });
    for (const { id } of own) {
      const loaded = await loadRun(mortal.store, id);
      if (loaded !== null && loaded.run.state.owner === workerId) known.set(id, loaded);
    }
    doubtful.clear();
  } catch (error) {
    expectFailure(ledger, error); // asked again before the next work
  }
}

async function act(process: Process, known: LoadedRun, dice: Dice): Promise<void> {
  const work = nextWork(known, dice);
  if (work.kind === "commit") await commit(process, { known, work, dice });
  else await move(process, { known, work, dice });
}

interface Acting<Kind extends Work["kind"]> {
  readonly known: LoadedRun;
  readonly work: Extract<Work, { readonly kind: Kind }>;
  readonly dice: Dice;
}

async function commit(process: Process, acting: Acting<"commit">): Promise<void> {
  const { known, work, dice } = acting;
  const sent = note(process.ledger.commits, process.id, work.commit);
  // Now and then a process that is not sure of itself sends the same again.
  const sends = dice.chance(10) === 0 ? 2 : 1;
  const answers = await Promise.all(Array.from({ length: sends }, () => send(process, sent, work.spoiled)));
  const taken = answers.find((each) => each.says === "yes");
  if (taken?.says === "yes") return goOn(process, { known, commit: work.commit, taken: taken.of });
  const last = answers.at(-1);
  if (last?.says === "no" && last.why === "refused") return;
  if (last?.says === "no" && last.why === "replaced") return bringLate(process, acting);
  await reload(process, known.run);
}

async function send(process: Process, sent: Sent<StepCommit, Taken>, spoiled: boolean): Promise<Answer<Taken>> {
  const { mortal, group, ledger } = process;
  const isProof = proofOf(mortal);
  sent.sends += 1;
  const answer = await group.commit(sent.what).then(
    (result): Answer<Taken> => {
      if (result.result === "taken") return { says: "yes", of: result };
      return isProof() ? { says: "no", why: result.result } : { says: "unknown", why: result.result };
    },
    (error: unknown): Answer<Taken> => {
      const kind = failureKind(error);
      if (kind === "connection") return { says: "unknown", why: "connection" };
      const isExpected = kind === "repeat" || (kind === "data" && spoiled);
      if (!isExpected) ledger.wrong.push(`a commit met ${String(error)}`);
      return isProof() ? { says: "no", why: "refused" } : { says: "unknown", why: "refused" };
    },
  );
  sent.answers.push(answer);
  if (answer.says === "yes") {
    if (spoiled) ledger.wrong.push(`a commit that breaks a rule of the database was taken on ${sent.what.runId}`);
    noteSteps(ledger, sent.what.runId, answer.of.stepSeq);
  }
  return answer;
}

function goOn(
  process: Process,
  { known, commit, taken }: { readonly known: LoadedRun; readonly commit: StepCommit; readonly taken: Taken },
): Promise<void> | void {
  const { status, cancelRequestedAt, pauseRequestedAt } = known.run.state;
  const isAsKnown =
    status === taken.status &&
    (cancelRequestedAt !== null) === taken.cancelRequested &&
    (pauseRequestedAt !== null) === taken.pauseRequested;
  if (!isAsKnown) return reload(process, known.run);
  process.known.set(known.run.id, afterTaken(known, commit, taken));
}

/** A worker that was replaced tells what its open effect has come to. */
async function bringLate(process: Process, { known, dice }: Acting<"commit">): Promise<void> {
  const { mortal, ledger, id: workerId } = process;
  const { id: runId } = known.run;
  process.known.delete(runId);
  const [attempt] = known.openAttempts;
  const call = known.calls.find(({ id }) => id === attempt?.callId);
  if (attempt === undefined || call === undefined || hasResult(known, call.id) || dice.chance(2) === 0) return;
  const body = aResult(call, dice.names("late"));
  const finding: StepBody = { kind: "finding", callId: call.id, output: body.output };
  ledger.foreign.push({ runId, body }, { runId, body: finding });
  await recordLateEvidence(mortal.store, {
    runId,
    attemptId: attempt.id,
    workerId,
    body,
    settle: { outcome: "succeeded" },
  }).catch((error: unknown) => expectFailure(ledger, error));
}

async function move(process: Process, { known, work, dice }: Acting<"move">): Promise<void> {
  const { mortal, group, ledger } = process;
  const { events, writes } = work;
  const reason = dice.names("reason");
  const what: Move & { readonly reason: string } = {
    run: known.run,
    events,
    actor: { kind: "worker", id: process.id },
    reason,
    writes,
  };
  const sent = note(ledger.moves, process.id, what);
  const isProof = proofOf(mortal);
  sent.sends += 1;
  try {
    const result = await group.move(what);
    if (result.result === "accepted") {
      sent.answers.push({ says: "yes", of: result.run });
      noteSeen(ledger, result.run);
      return await reload(process, known.run);
    }
    sent.answers.push(isProof() ? { says: "no", why: result.result } : { says: "unknown", why: result.result });
  } catch (error) {
    const isRepeat = failureKind(error) === "repeat" && isProof();
    sent.answers.push(isRepeat ? { says: "no", why: "repeat" } : { says: "unknown", why: "error" });
    expectFailure(ledger, error);
  }
  await reload(process, known.run);
}

/** Reads the run anew; it stays this process's only under the same claim. */
async function reload({ id: workerId, mortal, ledger, known, doubtful }: Process, { id, epoch }: Run): Promise<void> {
  known.delete(id);
  try {
    const loaded = await loadRun(mortal.store, id);
    if (loaded === null) return;
    noteSeen(ledger, loaded.run);
    if (loaded.run.state.owner === workerId && loaded.run.epoch === epoch) known.set(id, loaded);
  } catch (error) {
    expectFailure(ledger, error);
    doubtful.add(id);
  }
}

/** Whether a refusal that comes now proves something: no connection of the process broke since. */
export function proofOf(mortal: MortalStore): () => boolean {
  const before = mortal.failures();
  return () => mortal.failures() === before;
}

/** Connections break in these sequences, and locks are waited for in vain; nothing else may fail. */
export function expectFailure(ledger: Ledger, error: unknown): void {
  const kind = failureKind(error);
  if (kind !== "connection" && kind !== "repeat") ledger.wrong.push(`met ${String(error)}`);
}
