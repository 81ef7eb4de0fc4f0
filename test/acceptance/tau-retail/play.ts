// One play of a scenario on a fleet: everything is submitted at once, people do their part, a killer does its own.
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@holdpoint/client";
import type { Reply } from "@holdpoint/protocol";
import { collectEvidence, type Submitted } from "./evidence.ts";
import type { Fleet } from "./fleet/fleet.ts";
import { createRandomSource, type Kill, type KillLog, runKiller } from "./killer.ts";
import { type Approver, createApprover, listAllRuns, pause, retryWaiting } from "./people.ts";
import type { CaseEvidence, Scenario } from "./scenario.ts";
import { FINANCE, MANAGER, OPERATOR, tokenOf } from "./tokens.ts";

export interface PlayOptions {
  readonly scenario: Scenario;
  readonly fleet: Fleet;
  readonly seed: string;
  /** Hard limit of the whole play, in milliseconds. */
  readonly limitMs: number;
  /** Ends the play at once. */
  readonly interrupted: AbortSignal;
  readonly say: (line: string) => void;
}

/** What a play has come to. */
export interface Played {
  readonly evidence: readonly CaseEvidence[];
  readonly kills: KillLog;
  readonly takeovers: number;
  readonly operatorRetries: readonly string[];
  readonly faults: readonly string[];
  readonly durationMs: number;
}

const LOOK_EVERY_MS = 500;
const TELL_EVERY_MS = 5_000;
/** A part of the decisions that may be made at once; the rest keeps pace with the kills. */
const FIRST_DECISIONS = 0.2;
const PACED_DECISIONS = 0.7;
const SUBMITTED_AT_ONCE = 8;
const KEPT_ALIVE = 2;

type Run = Reply<"showRun">;

interface Progress {
  readonly kills: Kill[];
  readonly operatorReasons: string[];
  readonly startedMs: number;
  runs: readonly Run[];
  /** The killer has done what it came for: the work may end. */
  killerDone: boolean;
}

/**
 * Plays a scenario to its end, or to the limit; what was not reached by then is named in `faults`.
 *
 * @throws when a program of the fleet ends by itself, the api fails, or the play was interrupted.
 */
export async function play(options: PlayOptions): Promise<Played> {
  const { scenario, fleet, seed, limitMs, interrupted } = options;
  const operator = createClient({ baseUrl: fleet.apiUrl, token: tokenOf(OPERATOR) });
  const progress: Progress = {
    kills: [],
    operatorReasons: [],
    runs: [],
    killerDone: false,
    startedMs: performance.now(),
  };
  const approvers: readonly Approver[] = [MANAGER, FINANCE].map((user, index) =>
    createApprover({
      client: createClient({ baseUrl: fleet.apiUrl, token: tokenOf(user) }),
      random: createRandomSource(`${seed} ${user}`),
      // Together they make no more decisions than are allowed.
      mayHaveDecided: () => allowedDecisions(options, progress) - decisionsOf(approvers.toSpliced(index, 1)),
    }),
  );
  const submitted = await submitAll(options);
  const over = new AbortController();
  const limit = AbortSignal.timeout(limitMs);
  const stop = AbortSignal.any([over.signal, limit, interrupted]);
  const parts = [
    ...approvers.map((approver) => approver.work(stop)),
    killUntilEnough(options, progress, stop),
    watch({ options, operator, progress, approvers }, stop).finally(() => over.abort()),
  ];
  try {
    await Promise.race([Promise.all(parts), fleet.failed]);
  } finally {
    over.abort();
    await Promise.allSettled(parts);
  }
  const durationMs = performance.now() - progress.startedMs;
  await scenario.letRepliesGo(); // nothing that is stopped has to wait for them
  interrupted.throwIfAborted();
  const collected = await inBatches(submitted, (each) => collectEvidence(operator, each));
  return {
    evidence: collected.map(({ evidence }) => evidence),
    takeovers: collected.reduce((sum, { takeovers }) => sum + takeovers, 0),
    kills: progress.kills,
    operatorRetries: progress.operatorReasons,
    faults: faultsOf(options, approvers, progress),
    durationMs,
  };
}

function submitAll({ scenario, fleet, interrupted }: PlayOptions): Promise<readonly Submitted[]> {
  return inBatches(scenario.cases, async (each) => {
    interrupted.throwIfAborted();
    const client = createClient({ baseUrl: fleet.apiUrl, token: tokenOf(each.requester) });
    const { id: sessionId } = await client.createSession();
    const { agent } = scenario;
    const idempotencyKey = `case-${each.name}`;
    const run = await client.submitRun({ sessionId, agent, goal: each.goal }, { idempotencyKey });
    return { ...each, runId: run.id };
  });
}

/** How many requests may have been decided: the work must not end before the killer has done its part. */
function allowedDecisions({ scenario, fleet }: PlayOptions, { kills, killerDone }: Progress): number {
  if (killerDone) return Number.POSITIVE_INFINITY;
  const { plan, minimums } = scenario;
  const afterWrite = kills.filter((kill) => kill.afterWrite !== null).length;
  const reached = [
    kills.length / plan.kills,
    afterWrite / plan.killsAfterWrite,
    fleet.takeovers() / minimums.takeovers,
  ];
  // Their mean: kills after a write need writes, so these must not wait for them alone.
  const share = reached.reduce((sum, part) => sum + Math.min(part, 1), 0) / reached.length;
  return Math.floor(scenario.approvals * (FIRST_DECISIONS + PACED_DECISIONS * share));
}

async function killUntilEnough(options: PlayOptions, progress: Progress, stop: AbortSignal): Promise<void> {
  const { scenario, fleet, seed } = options;
  const { plan, minimums } = scenario;
  const deps = {
    random: createRandomSource(`${seed} killer`),
    kill: ({ pid, scope }: Kill) => fleet.kill(pid, scope),
    onKill: (kill: Kill) => progress.kills.push(kill),
    choices: async () => ({
      workerPids: worthKilling(fleet.workerPids(), progress.runs),
      held: await scenario.heldReplies(progress.runs),
    }),
    wait: async (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }),
  };
  await runKiller(deps, plan, stop);
  while (fleet.takeovers() < minimums.takeovers && !stop.aborted) {
    await runKiller(deps, { ...plan, kills: 1, killsAfterWrite: 0 }, stop);
  }
  progress.killerDone = true;
  if (!stop.aborted) await scenario.letRepliesGo();
}

/** Those who have something to lose; nobody while too few are alive: on a slow machine the next ones are still starting. */
function worthKilling(workerPids: readonly number[], runs: readonly Run[]): readonly number[] {
  const owners = new Set(runs.map(({ owner }) => owner?.pid));
  return workerPids.length < KEPT_ALIVE ? [] : workerPids.filter((pid) => owners.has(pid));
}

/** Looks after the runs until all have ended. */
async function watch(
  watched: {
    readonly options: PlayOptions;
    readonly operator: Client;
    readonly progress: Progress;
    readonly approvers: readonly Approver[];
  },
  stop: AbortSignal,
): Promise<void> {
  const { options, operator, progress, approvers } = watched;
  let toldMs = performance.now();
  while (!stop.aborted) {
    progress.runs = await listAllRuns(operator);
    progress.operatorReasons.push(...(await retryWaiting(operator, progress.runs)));
    const ended = progress.runs.filter(({ endedAt }) => endedAt !== null).length;
    if (ended === options.scenario.cases.length) return;
    if (performance.now() - toldMs > TELL_EVERY_MS) {
      toldMs = performance.now();
      options.say(progressLine(options, progress, { ended, decided: decisionsOf(approvers) }));
    }
    await pause(LOOK_EVERY_MS, stop);
  }
}

function progressLine(
  { scenario, fleet }: PlayOptions,
  { kills, startedMs }: Progress,
  { ended, decided }: { readonly ended: number; readonly decided: number },
): string {
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const afterWrite = kills.filter((kill) => kill.afterWrite !== null).length;
  return [
    `${String(seconds).padStart(4)} s`,
    `${ended} of ${scenario.cases.length} ended`,
    `${decided} approvals`,
    `${kills.length} kills (${afterWrite} after a write)`,
    `${fleet.takeovers()} takeovers`,
    `${fleet.lookUps()} look-ups`,
  ].join("  ");
}

function decisionsOf(approvers: readonly Approver[]): number {
  return approvers.reduce((sum, { decided }) => sum + decided, 0);
}

function faultsOf(
  { scenario, limitMs }: PlayOptions,
  approvers: readonly Approver[],
  { runs }: Progress,
): readonly string[] {
  const refused = approvers.flatMap(({ refusals }) => refusals.map((refusal) => `a decision was refused: ${refusal}`));
  const open = runs.filter(({ endedAt }) => endedAt === null);
  const left = scenario.cases.length - (runs.length - open.length);
  if (left === 0) return refused;
  const late = `the time limit of ${limitMs / 1_000} s was reached with ${left} runs not ended`;
  return [...refused, late, ...open.map(({ id, sentence }) => `${id}: ${sentence}`)];
}

async function inBatches<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += SUBMITTED_AT_ONCE) {
    results.push(...(await Promise.all(items.slice(start, start + SUBMITTED_AT_ONCE).map(work))));
  }
  return results;
}
