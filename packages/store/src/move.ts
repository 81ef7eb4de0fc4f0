import type {
  Actor,
  ApprovalRule,
  ApprovalState,
  Approvers,
  Checkpoint,
  DecisionKind,
  JsonValue,
  Presented,
  Rule,
  RunEvent,
  StepBody,
} from "@holdpoint/core";
import type { Run } from "./run.ts";
import type { TaskWrite } from "./task-writes.ts";

/** Something that is said in the run's session together with the transition. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly author: string;
  readonly text: string;
}

/** An attempt that is settled together with the transition. */
export interface Settle {
  readonly attemptId: string;
  readonly outcome: "succeeded" | "failed" | "happened" | "did_not_happen" | "superseded" | "not_established";
  readonly settledBy: string;
  readonly errorClass?: string;
  readonly errorCode?: string;
  readonly externalRef?: string | null;
}

/** What a person is shown beside the arguments; nothing is decided by it. */
export interface ShownRequest extends Presented {
  /** What the model said when it made the call. It wrote this itself: nobody has checked it. */
  readonly modelReason: string | null;
  /** Earlier results of the run, the beginnings of them. */
  readonly evidence: readonly { readonly tool: string; readonly result: string; readonly excerpt: string }[];
  /** What edited arguments must look like, as JSON schema; null: they can't be edited. */
  readonly editSchema: JsonValue;
}

/** An approval request that is made with a hold. */
export interface ApprovalRequest {
  readonly id: string;
  readonly callId: string;
  readonly tool: string;
  /** Canonical JSON. */
  readonly args: string;
  readonly argsHash: string;
  readonly terms: ApprovalRule;
  readonly request: ShownRequest;
  readonly excluded: readonly string[];
  readonly editedBy: string | null;
  /** The approval that whoever edited has given with it; null: nobody has approved it yet. */
  readonly approval: { readonly by: string; readonly note: string | null; readonly suffices: boolean } | null;
}

/** What becomes of a request; what is left out stays. */
export interface ApprovalChange {
  readonly id: string;
  readonly state: Exclude<ApprovalState, "spent">;
  readonly decidedBy?: string;
  readonly note?: string | null;
  readonly answer?: JsonValue;
  /** How many have approved at the present level. */
  readonly given?: number;
  readonly level?: number;
  readonly approvers?: Approvers;
  readonly extended?: boolean;
  /** On the database's clock, in milliseconds since the epoch. */
  readonly deadlineMs?: number;
}

export interface DecisionRecord {
  readonly id: string;
  readonly approvalId: string;
  readonly decision: DecisionKind;
  readonly argsHash: string;
  readonly note: string | null;
  readonly level: number;
  readonly payload: JsonValue;
}

/** What is stored with a transition, in the same statement: all of it or nothing. */
export interface Writes {
  readonly facts?: readonly { readonly id: string; readonly body: StepBody }[];
  readonly messages?: readonly Message[];
  readonly steps?: readonly StepBody[];
  readonly settles?: readonly Settle[];
  /**
   * Look-ups that were made; and, with a code, why a try left its outcome unknown or (with its class) was turned down. The
   * attempts stay open.
   */
  readonly lookUps?: readonly {
    readonly attemptId: string;
    readonly errorClass?: string;
    readonly errorCode?: string;
  }[];
  readonly requests?: readonly ApprovalRequest[];
  readonly approvals?: readonly ApprovalChange[];
  readonly decisions?: readonly DecisionRecord[];
  readonly artifacts?: readonly Artifact[];
  readonly checkpoint?: Checkpoint;
  readonly currentStep?: string;
  /** Where the owner goes on with the run: its next progress is due within this time, in milliseconds. */
  readonly progressMs?: number;
  /** What a worker that was replaced reports about an attempt that somebody settled before. */
  readonly late?: readonly { readonly attemptId: string; readonly evidence: JsonValue }[];
  /** The children whose ends this counts: one `child` fact each, and as of the row that was read not counted yet. */
  readonly toldChildren?: readonly string[];
  /** The version of its agent that the run goes by from now on. */
  readonly agentVersion?: string;
  /** What a run brings home at its end, as stored values. */
  readonly result?: JsonValue;
  /** Where that is only its beginning: the hash of the artifact that has the whole, or `not_kept`. */
  readonly resultArtifact?: string;
  /** What the other side reported by itself. */
  readonly callbacks?: readonly CallbackRecord[];
  /** Who takes a task in hands, or what its executor says last. */
  readonly task?: TaskWrite;
}

/** A report of the other side about an effect, stored once for each of its events. */
export interface CallbackRecord {
  readonly source: string;
  readonly eventId: string;
  /** The run of the call, where that is not the run that is told. */
  readonly runId?: string;
  readonly callId: string;
  readonly status: "pending" | "settled" | "failed";
}

export interface Artifact {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly mediaType: string;
  readonly content: string;
}

/** One run's move: the row as it was read, what happened, and who says so. */
export interface Move {
  readonly run: Run;
  /** Reduced one after the other; each becomes a transition of its own, all in one statement. */
  readonly events: readonly RunEvent[];
  readonly actor: Actor;
  readonly reason?: string | null;
  readonly writes?: Writes;
  /** Refuses the move if this moment (ms since the epoch; at a pause's start while paused) has passed on the database's clock. */
  readonly notAfterMs?: number;
}

export type TransitionResult =
  | { readonly result: "accepted"; readonly run: Run }
  /** The table ignores the event in this status: a duplicate, or late. */
  | { readonly result: "ignored"; readonly run: Run }
  | { readonly result: "rejected"; readonly rule: Rule; readonly event: string; readonly run: Run }
  /** The row has changed since it was read, or a precondition does not hold any more. Nothing was stored. */
  | { readonly result: "conflict"; readonly current: Run }
  | { readonly result: "notFound" };
