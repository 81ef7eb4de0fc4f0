import type { AgentRef, Approvers, JsonObject, JsonValue, Outcome } from "@holdpoint/core";
import type { Position } from "./history.ts";

/** What a person is asked, and what happens when nobody answers in time. */
export interface PersonRequest {
  readonly question: string;
  /** What the person is shown beside the question. */
  readonly shown: JsonValue;
  readonly approvers: Approvers;
  /** In milliseconds from the start; null: the runtime's default. */
  readonly deadlineMs: number | null;
  /** Either way the execution is done with the decision `expired`; here it says what that leads to. */
  readonly onDeadline: "reject" | "operator";
  /** Whoever asked for the run, or steers it, may not answer. */
  readonly fourEyes: boolean;
  /** What may be decided: a release, or (with `answer`) what its schema takes. */
  readonly asks: "answer" | "release";
  /** What an answer must look like, as JSON schema; null: any JSON, or there is none to give. */
  readonly answerSchema: JsonObject | null;
}

interface Starting extends Position {
  /** What the call is frozen with. */
  readonly input: JsonValue;
}

/** Work that is done outside: its execution is open until its result comes. */
export type WorkStart = Starting &
  (
    | { readonly kind: "agent"; readonly agent: AgentRef; readonly goal: string; readonly retries: number | null }
    | { readonly kind: "tool"; readonly tool: string; readonly retries: number | null }
    | { readonly kind: "workflow"; readonly workflow: AgentRef; readonly retries: number | null }
    | { readonly kind: "human"; readonly request: PersonRequest }
    | { readonly kind: "approval"; readonly request: PersonRequest }
  );

/**
 * What needs nothing outside: its execution is stored as complete in the same step, with this state and output, so that a
 * condition, a gate's verdict and a map's list are judged once and never again.
 */
export type SettledStart = Starting & {
  /** `gate`: a verdict; `map`: the list whose items are executed next; `pass`: the node is not needed. */
  readonly kind: "gate" | "map" | "pass";
  readonly settled: { readonly state: "done" | "passed_over"; readonly output: JsonValue };
};

/** One execution to start. */
export type NodeStart = WorkStart | SettledStart;

/** Whether a start is complete as soon as it is stored. */
export function isSettled(start: NodeStart): start is SettledStart {
  return "settled" in start;
}

/** Why a person has to decide. */
export type HoldReason =
  /** An execution failed, and its retries are used up. */
  | "node_failed"
  /** An execution ran and achieved nothing; its message says at which step, and why. */
  | "node_blocked"
  /** What an execution brought does not fit the node's schema, and was not passed on. */
  | "invalid_node_output"
  /** A gate has said no as often as it may. */
  | "rounds_exhausted"
  /** A gate has said no, and there is nowhere to send the work back to. */
  | "no_go"
  /** Nobody answered in time, and the node leaves that to an operator. */
  | "deadline_passed"
  /** A function of the definition threw, or gave what cannot be used. */
  | "graph_error";

/** What an operator may choose at a hold: exactly these. */
export const HOLD_CHOICES = ["retry", "skip", "abort"] as const;

/** A wait for a person, who retries, skips or aborts. What is open meanwhile goes on; nothing new starts. */
export interface WorkflowHold {
  readonly do: "hold";
  readonly reason: HoldReason;
  /** Null: the workflow's own `result`. */
  readonly node: string | null;
  readonly round: number;
  readonly item: number | null;
  /** The execution that it is about; null: there is none. */
  readonly callId: string | null;
  readonly message: string;
}

/** What comes next. */
export type Decision =
  /** Either all settled, or all work. */
  | { readonly do: "start"; readonly nodes: readonly NodeStart[] }
  /** Something is open, and there is nothing more to start. */
  | { readonly do: "wait" }
  | WorkflowHold
  | { readonly do: "end"; readonly outcome: Outcome; readonly output: JsonValue };
