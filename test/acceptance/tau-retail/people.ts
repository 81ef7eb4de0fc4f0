// The people of the acceptance test, who only have the api: approvers who decide, an operator who looks after the runs.
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, ProblemError } from "@holdpoint/client";
import type { Reply } from "@holdpoint/protocol";
import type { RandomSource } from "./killer.ts";

type Run = Reply<"showRun">;
type Approval = Reply<"listApprovals">["items"][number];

const APPROVER_LOOKS_EVERY_MS = 200;
/** So that decisions, and with them the writes, are spread over the whole test. */
const DECISIONS_A_LOOK = 3;
/** An approver who was asked to wait decides all the same after this time: waiting must never end in a standstill. */
const PATIENCE_MS = 2_000;
const PAGE = 200;

export interface Approver {
  readonly decided: number;
  /** Refused decisions, which no correct product gives: nobody else decides. */
  readonly refusals: readonly string[];
  /** Approves what is pending, with the hash that is shown, until the signal. */
  work(signal: AbortSignal): Promise<void>;
}

/** @param mayHaveDecided  how many decisions this approver may have made by now. */
export function createApprover(deps: {
  readonly client: Client;
  readonly random: RandomSource;
  readonly mayHaveDecided: () => number;
}): Approver {
  const { client, random, mayHaveDecided } = deps;
  const refusals: string[] = [];
  let decided = 0;
  let lastMs = performance.now();

  const approve = async ({ id, argsHash }: Approval): Promise<void> => {
    try {
      await client.decideApproval({ approvalId: id, decision: "approve", argsHash });
      decided += 1;
      lastMs = performance.now();
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      // "busy" invites to try again, which the next look does.
      if (error.rule !== "busy") refusals.push(`${id}: ${error.message}`);
    }
  };
  return {
    get decided() {
      return decided;
    },
    refusals,
    work: async (signal) => {
      while (!signal.aborted) {
        const { items } = await client.listApprovals({ state: ["pending"], mine: true, limit: PAGE });
        const waitedLong = performance.now() - lastMs > PATIENCE_MS;
        // Where two have to approve, what this one has approved is still pending.
        const open = items.filter(({ decisions }) => decisions.approve === null);
        const quota = Math.max(mayHaveDecided() - decided, waitedLong ? 1 : 0);
        for (const approval of choose(random, open, Math.min(quota, DECISIONS_A_LOOK))) await approve(approval);
        await pause(APPROVER_LOOKS_EVERY_MS, signal);
      }
    },
  };
}

/** All runs, the newest first. */
export async function listAllRuns(client: Client): Promise<readonly Run[]> {
  const runs: Run[] = [];
  let cursor: string | null = null;
  do {
    const page: Reply<"listRuns"> = await client.listRuns({ limit: PAGE, ...(cursor === null ? {} : { cursor }) });
    runs.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return runs;
}

/** Retries what waits for an operator; returns why each waited. */
export async function retryWaiting(client: Client, runs: readonly Run[]): Promise<readonly string[]> {
  const waiting = runs.filter(({ status }) => status === "waiting_operator");
  for (const { id: runId } of waiting) {
    await client.decideAsOperator({ runId, choice: "retry", reason: "a worker was killed by the acceptance test" });
  }
  return waiting.map(({ waitingFor }) => waitingFor?.reason ?? "unknown");
}

/** Ends early, without an error, when the signal aborts. */
export async function pause(pauseMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(pauseMs, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function choose<T>(random: RandomSource, items: readonly T[], count: number): readonly T[] {
  const left = [...items];
  return Array.from({ length: Math.min(Math.max(count, 0), left.length) }, () =>
    left.splice(Math.floor(random() * left.length), 1),
  ).flat();
}
