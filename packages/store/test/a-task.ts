import { createHash } from "node:crypto";
import type { TaskTerms } from "@holdpoint/core";
import {
  createSession,
  newId,
  type Run,
  registerTask,
  type Store,
  startTask,
  submitRun,
  type TaskReport,
} from "../src/index.ts";
import { ALICE } from "./a-run.ts";

export const TASK = { name: "ci-build", version: "1" };
export const HEARTBEAT_MS = 60_000;
export const GRACE_MS = 30_000;
export const TERMS: TaskTerms = {
  description: "Builds and tests a branch",
  heartbeatMs: HEARTBEAT_MS,
  graceMs: GRACE_MS,
  onFailure: "operator",
  retries: 1,
};

export const DONE: TaskReport = { kind: "complete", outcome: { kind: "succeeded" } };

/** The hash of a token. */
export function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A task that waits for somebody. Terms other than the usual ones make it a task of its own. */
export async function aTask(store: Store, terms: Partial<TaskTerms> = {}): Promise<Run> {
  const agent = Object.keys(terms).length === 0 ? TASK : { name: `ci-${newId()}`, version: "1" };
  await registerTask(store, agent, { ...TERMS, ...terms });
  const { id: sessionId } = await createSession(store, ALICE.id);
  const submitted = await submitRun(store, { sessionId, agent, goal: "build main", actor: ALICE });
  if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
  return submitted.run;
}

/** Whoever has a task in hands: its run as it was then, and the hash of the token. */
export interface InHands {
  readonly run: Run;
  readonly runId: string;
  readonly tokenHash: string;
}

/** Takes a task in hands; fails where it can't be had. */
export async function start(store: Store, runId: string, token: string = newId()): Promise<InHands> {
  const tokenHash = hashOf(token);
  const started = await startTask(store, {
    runId,
    startedBy: "ci-bot",
    executor: "runner 7",
    tokenHash,
    startKey: null,
  });
  if (started.result !== "started") throw new Error(`not started: ${JSON.stringify(started)}`);
  return { run: started.run, runId, tokenHash };
}

/** A task that somebody has in hands. */
export async function aStartedTask(store: Store, terms: Partial<TaskTerms> = {}): Promise<InHands> {
  const { id } = await aTask(store, terms);
  return start(store, id);
}
