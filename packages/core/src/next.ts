import type { ApprovalRule } from "./approval.ts";
import type { RunHistory } from "./history.ts";
import type { JsonValue } from "./json.ts";
import type { DenyRule } from "./policy.ts";
import type { Hold, Outcome } from "./state.ts";
import type {
  Approval,
  Call,
  Child,
  ClosedService,
  Fact,
  Limits,
  LineEffect,
  OpenAttempt,
  Price,
  ResultKind,
} from "./step.ts";

/** All that the loop knows of a run when it decides what comes next. */
export interface PlanInput {
  /** Its steps and calls. */
  readonly history: RunHistory;
  readonly openAttempts: readonly OpenAttempt[];
  /** All that this run has started, each try by itself. */
  readonly children: readonly Child[];
  /** How many of them have not been counted as ended. */
  readonly liveChildren: number;
  /** Its turns are decided by a graph, not by a model. */
  readonly isGraph: boolean;
  /** The version of its agent that the run goes by. */
  readonly version: string;
  /** In the order in which they were asked for. */
  readonly approvals: readonly Approval[];
  /** Facts that no step has taken in yet, in order of arrival. */
  readonly unread: readonly Fact[];
  /** Effects of the earlier runs of the line. */
  readonly lineEffects: readonly LineEffect[];
  /** What operators have forbidden since. */
  readonly denials: readonly DenyRule[];
  /** The services that nobody may call freely now. */
  readonly services: readonly ClosedService[];
  readonly limits: Limits;
  /** Null: the model's price is not known, and costs are not limited. */
  readonly price: Price | null;
  /** For how long workers have had the run, in milliseconds. */
  readonly workedMs: number;
  readonly onBlocked: "operator" | "end";
  /** The retries of a model request, and the service behind the model. */
  readonly model: Pick<Call, "retries" | "throttledForMs" | "service">;
  readonly requester: string;
  /** The database's clock at the load. */
  readonly nowMs: number;
}

/** What an approval is asked for. */
export interface RequestedApproval {
  readonly call: Call;
  readonly approval: ApprovalRule;
  /** Whoever changed the arguments before; null: they are the model's. */
  readonly editedBy: string | null;
}

/** Asks what has become of an effect that the other side has accepted as pending since `sinceMs`. */
export interface PollNext {
  readonly do: "poll";
  readonly call: Call;
  readonly output: JsonValue;
  readonly sinceMs: number;
  /** What the run waits for beside it; not there where that is nothing. */
  readonly beside?: Hold;
}

/** `requests` are the calls for which an approval has to be asked for in this hold. */
export interface HoldNext {
  readonly do: "hold";
  readonly hold: Hold;
  readonly requests: readonly RequestedApproval[];
}

/** What the owner does next. */
export type Next =
  | { readonly do: "settle_attempt"; readonly call: Call; readonly attempt: OpenAttempt }
  | { readonly do: "read_facts"; readonly facts: readonly Fact[] }
  /**
   * A wait of `afterMs` milliseconds belongs before it, counted from the failure that is the last step. With a `service`,
   * it may start only as the one try that finds out whether that is back.
   */
  | {
      readonly do: "call_model";
      readonly turn: number;
      readonly afterMs: number;
      readonly service: ClosedService | null;
    }
  | {
      readonly do: "execute";
      /** With the arguments as they run: a person may have changed the model's. */
      readonly call: Call;
      readonly attempt: number;
      readonly approvalId: string | null;
      readonly afterMs: number;
      readonly service: ClosedService | null;
    }
  | { readonly do: "set_timer"; readonly call: Call }
  /** Checks whether what the run has done means the same in another version, and goes on in that. */
  | { readonly do: "migrate"; readonly version: string }
  /** Asks the graph what is ready; `waiting` is what the run waits for if that is nothing, null if nothing is open. */
  | {
      readonly do: "decide";
      readonly turn: number;
      readonly waiting: HoldNext | PollNext | null;
    }
  /** Starts the first of the children that the call is for (`ordinals` null), or those that are still to come. */
  | {
      readonly do: "start_children";
      readonly call: Call;
      readonly try: number;
      readonly ordinals: readonly number[] | null;
      readonly approvalId: string | null;
    }
  /** Asks children to stop that nobody waits for any more. */
  | { readonly do: "stop_children"; readonly call: Call; readonly children: readonly Child[] }
  | PollNext
  | {
      readonly do: "write_result";
      readonly call: Call;
      readonly result: ResultKind;
      readonly output: JsonValue;
      /** Where `output` is only the beginning of what was brought before: the hash of the artifact that has the whole, or `not_kept`. */
      readonly artifact?: string;
    }
  | HoldNext
  | { readonly do: "end"; readonly status: "completed"; readonly outcome: Outcome };
