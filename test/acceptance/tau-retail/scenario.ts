import type { Run } from "@holdpoint/protocol";
import type { KillPlan } from "./killer.ts";
import type { RunMinimums, TaskFinding } from "./report.ts";
import type { HeldReply } from "./store-service/reply-holds.ts";

/** One piece of work that is submitted as a run. */
export interface Case {
  readonly name: string;
  readonly requester: string;
  readonly goal: string;
}

/** What a run has recorded of one of its tool calls, in model order. */
export interface RecordedResult {
  readonly result: string;
  readonly output: unknown;
}

/** What is left of a case when everything has ended. */
export interface CaseEvidence {
  readonly name: string;
  readonly status: Run["status"];
  readonly outcome: string | null;
  readonly results: readonly RecordedResult[];
}

export interface ScenarioOptions {
  /** Chooses the replies that are held back. */
  readonly seed: string;
  /** A database of its own for the outside world. */
  readonly databaseUrl: string;
  readonly logDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Work for a fleet, and an outside world that remembers what was done to it. */
export interface Scenario extends AsyncDisposable {
  readonly title: string;
  readonly agent: { readonly name: string; readonly version: string };
  readonly agents: { readonly module: URL; readonly env: Readonly<Record<string, string>> };
  readonly cases: readonly Case[];
  /** How many approvals will be needed. */
  readonly approvals: number;
  /** How the killer works here, and what it must reach at least. */
  readonly plan: KillPlan;
  readonly minimums: RunMinimums;
  /** Writes that have happened while their callers still wait for the replies. */
  heldReplies(runs: readonly Run[]): Promise<readonly Pick<HeldReply, "operationId" | "workerPid">[]>;
  /** From now on every reply leaves at once, and those that are held leave now. */
  letRepliesGo(): Promise<void>;
  /** Compares what is left with what must be left. */
  judge(evidence: readonly CaseEvidence[]): Promise<readonly TaskFinding[]>;
}
