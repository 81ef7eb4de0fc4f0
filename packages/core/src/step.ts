import type { ApprovalRule, ApprovalState, PendingRequest } from "./approval.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Outcome } from "./state.ts";
import type { Status } from "./status.ts";

/** An agent as runs name it: the version is the one they were submitted with. */
export interface AgentRef {
  readonly name: string;
  readonly version: string;
}

/** What the other side of a tool offers. A key and a look-up may both be there; an effect with neither is unsafe. */
export type EffectProperties =
  | { readonly kind: "read" }
  | ChildrenProperties
  /** It only lets time pass. */
  | { readonly kind: "timer" }
  | {
      readonly kind: "effect";
      /** The same operation id twice acts once, for this long after its first use. */
      readonly keyValidForMs: number | null;
      /** A look-up's "it did not happen" counts only this long after the call's deadline. */
      readonly lookUpSettlesWithinMs: number | null;
      /** Equal calls (tool and arguments) are different operations, each to be done. */
      readonly equalCallsAreDistinct: boolean;
      /** The other side may accept it now and settle it later; null: what it answers is final. */
      readonly settlement: SettlesLater | null;
    };

/** A call that starts child runs and waits for them. It has no attempts: each child has its own. */
export interface ChildrenProperties {
  readonly kind: "children";
  /** How many have to succeed before the call has its result; the others are stopped then. `all`: every one ends. */
  readonly wait: "all" | number;
  /** The most that are live at once. */
  readonly atOnce: number;
  /** What a blocked child leads to: an operator is asked, or the model is told. */
  readonly onBlocked: "operator" | "tell";
  /** Equal calls (tool and arguments) are different pieces of work, each to be done. */
  readonly equalCallsAreDistinct: boolean;
  /**
   * A call of the same place (the part of its `toolCallId` before the `@`) does the same work again: its children go on in the
   * lines of those before them, so that nothing that these did is done twice. Otherwise equal arguments say so.
   */
  readonly sameWork?: "place";
  /** After this long without an end a person is asked, in milliseconds. */
  readonly withinMs: number;
}

/** A run that another has started, as its parent sees it. */
export interface Child {
  readonly id: string;
  /** The id as people see it. */
  readonly shownId: string;
  readonly callId: string;
  /** Its place among the children of its call, from 0. */
  readonly ordinal: number;
  /** 1 for the first; grows where an operator lets the call try again. */
  readonly try: number;
  readonly agent: AgentRef;
  /** Its end has been counted on the parent's row. */
  readonly ended: boolean;
  readonly status: Status;
  readonly outcome: Outcome | null;
  readonly endReason: string | null;
  readonly result: JsonValue;
  /** Where `result` is only its beginning: the hash of the artifact that has the whole, or `not_kept`. */
  readonly resultArtifact: string | null;
  readonly stopRequested: boolean;
}

/** How an effect that the other side has accepted as pending is followed. */
export interface SettlesLater {
  /** The shortest time between two polls, in milliseconds; they grow rarer with time. */
  readonly everyMs: number;
  /** After this long without an end a person is asked, in milliseconds from the acceptance. */
  readonly withinMs: number;
}

/** What policy and validation said about a call when the model asked for it; stored with it. */
export type Verdict =
  | { readonly kind: "allowed" }
  | { readonly kind: "needs_approval"; readonly approval: ApprovalRule }
  | { readonly kind: "denied"; readonly rule: string; readonly message: string }
  | { readonly kind: "invalid"; readonly message: string };

/** One tool call of a turn: frozen arguments and one operation id for its whole life. */
export interface Call {
  readonly id: string;
  readonly turn: number;
  readonly ordinal: number;
  /** The model's own name for the call; unique only within its turn. */
  readonly toolCallId: string;
  readonly tool: string;
  readonly args: JsonValue;
  readonly argsHash: string;
  readonly operationId: string;
  readonly effect: EffectProperties;
  readonly verdict: Verdict;
  readonly timeoutMs: number;
  /** Tries after the first one that failed for certain, before a person is asked. */
  readonly retries: number;
  /** How long in a row it may be throttled before a person is asked, in milliseconds; costs no tries. */
  readonly throttledForMs: number;
  /** The service behind the tool, by name: its limiter is shared by all that use it. */
  readonly service: string;
}

/** One numbered try of a call that was started and of which nobody knows yet how it ended. */
export interface OpenAttempt {
  readonly id: string;
  readonly callId: string;
  readonly number: number;
  readonly startedAtMs: number;
  /** The call's own deadline: after it the worker that started it waits no longer. */
  readonly deadlineAtMs: number;
  /** When the operation id was first sent, by this or an earlier attempt: a key's validity counts from there. */
  readonly keyFirstUsedAtMs: number;
  /** A repeat under the key was turned down: that says nothing of the attempt before it, and another would be turned down too. */
  readonly repeatRefused: boolean;
}

export const ERROR_CLASSES = ["transient", "throttled", "refused", "caller", "unknown_outcome"] as const;

/**
 * How a call or a model request failed, decided by codes and never by text. `unknown_outcome` is for effects only: the
 * other side may have acted.
 */
export type ErrorClass = (typeof ERROR_CLASSES)[number];

/** How a call ended, as the model is told it. Only `succeeded` means that the tool did what it was asked. */
export type ResultKind =
  | "succeeded"
  /** It ran, and achieved a part of what it was for; its output says which. */
  | "partial"
  /** It ran to its end and achieved nothing; its output says why. */
  | "blocked"
  | "failed"
  | "invalid"
  | "denied"
  | "rejected"
  | "expired"
  | "skipped"
  /** A person answered instead of the call. */
  | "answered"
  | "not_established"
  | "answered_from_record";

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The body of a step: what one commit of an owner's progress says. */
export type StepBody =
  | {
      readonly kind: "model_reply";
      readonly turn: number;
      /** The assistant's message as the provider gave it, each part's metadata untouched. */
      readonly message: JsonObject;
      readonly text: string;
      readonly callIds: readonly string[];
      /** What the agent's completion condition said of a reply without calls; null: it is a question. */
      readonly outcome: Outcome | null;
      readonly usage: Usage;
    }
  /** What a graph has found ready: calls that it makes, and what needs nothing outside and is complete at once. */
  | {
      readonly kind: "nodes_started";
      readonly turn: number;
      readonly callIds: readonly string[];
      readonly nodes: readonly StartedNode[];
    }
  | {
      readonly kind: "model_failed";
      readonly errorClass: ErrorClass;
      readonly code: string;
      readonly retryInMs: number;
      readonly probe?: true;
    }
  | { readonly kind: "intent"; readonly callId: string; readonly attempt: number }
  /** The timer of the call goes off then, on the database's clock, in milliseconds since the epoch. */
  | { readonly kind: "timer_set"; readonly callId: string; readonly dueAtMs: number }
  /** Children of the call have been started: those with these places, of `total`. */
  | {
      readonly kind: "children_started";
      readonly callId: string;
      readonly try: number;
      readonly ordinals: readonly number[];
      readonly total: number;
    }
  | {
      readonly kind: "call_failed";
      readonly callId: string;
      readonly attempt: number;
      readonly errorClass: ErrorClass;
      readonly code: string;
      readonly retryInMs: number;
      /** It was the one that finds out whether its service is back: that it is not costs the run no try. */
      readonly probe?: true;
      /** How long a read's try took; those of effects have attempts of their own. */
      readonly durationMs?: number;
    }
  | {
      readonly kind: "did_not_happen";
      readonly callId: string;
      readonly attempt: number;
      /** Its worker had seen it fail, without knowing whether it had acted: a try; absent where a worker was lost, which is none. */
      readonly code?: string;
    }
  /** The other side has accepted the effect and settles it later; its result follows. */
  | { readonly kind: "effect_pending"; readonly callId: string; readonly output: JsonValue }
  /** Evidence that came after an attempt had been settled otherwise: it did happen. */
  | { readonly kind: "finding"; readonly callId: string; readonly output: JsonValue }
  | {
      readonly kind: "tool_result";
      readonly callId: string;
      readonly result: ResultKind;
      /** What the model is told; outputs beyond the size limit are cut, with a note and the whole as an artifact. */
      readonly output: JsonValue;
      /** Where `output` is only its beginning: the hash of the artifact that has the whole, or `not_kept`. Of a child's result, too. */
      readonly artifact?: string;
      /** Which try of a read it was, and how long that took: a read's try is over when it is stored, and needs no attempt. */
      readonly attempt?: number;
      readonly durationMs?: number;
      /** How that try failed. */
      readonly errorClass?: ErrorClass;
      readonly code?: string;
    }
  | { readonly kind: "message"; readonly from: string; readonly text: string }
  | { readonly kind: "no_answer" }
  /** An operator wants a workflow to go on in another version of its definition. */
  | { readonly kind: "migration"; readonly version: string; readonly by: string }
  /**
   * The other side says that something has become of an effect; its tool asks what. `failed`: it says that the effect has
   * failed, which counts where the call has its result and nobody asks any more.
   */
  | { readonly kind: "callback"; readonly callId: string; readonly failed?: true }
  | { readonly kind: "operator"; readonly choice: "retry" | "skip"; readonly callId: string | null };

/** One execution of a node of a graph. */
export interface StartedNode {
  /** The id of its call, or one of its own where it made none. */
  readonly id: string;
  readonly node: string;
  /** Which time the node runs, from 1. */
  readonly round: number;
  /** Its place in the list of a map, from 0; null where there is none. */
  readonly item: number | null;
  /** What it came to, where it was complete at once; null where its call has a result. */
  readonly settled: { readonly state: "done" | "passed_over"; readonly output: JsonValue } | null;
}

export interface Step {
  readonly seq: number;
  /** When it was stored, on the database's clock, in milliseconds since the epoch. */
  readonly atMs: number;
  readonly body: StepBody;
}

/** An approval request as the loop needs it. */
export interface Approval extends PendingRequest {
  readonly state: ApprovalState;
  /** What it is for, as it will run: the model's arguments, or what a person has made of them. */
  readonly args: JsonValue;
  readonly argsHash: string;
  /** Who changed the arguments; null: they are the model's. */
  readonly editedBy: string | null;
  readonly validUntilMs: number | null;
  readonly decidedBy: string | null;
  readonly note: string | null;
  /** What a person gave as the call's result. */
  readonly answer: JsonValue;
  /** Somebody who approved may not any more: it can't be spent. */
  readonly rightsLost: boolean;
}

/** A fact from outside that the run has not read yet. */
export interface Fact {
  readonly id: string;
  readonly body: Extract<StepBody, { kind: "message" | "no_answer" | "operator" | "callback" | "migration" }>;
}

/** How a call of this line of runs ended: its effect happened, may have, or was turned down by a person. */
export interface LineEffect {
  readonly callId: string;
  readonly tool: string;
  /** Of the arguments that ran, or were shown. */
  readonly argsHash: string;
  readonly result: ResultKind;
  readonly output: JsonValue;
  /** Where `output` is only its beginning: the hash of the artifact that has the whole, or `not_kept`. */
  readonly artifact?: string;
}

/** The most that a run may use; each is judged before a start and never breaks an open call. */
export interface Limits {
  readonly turns: number;
  readonly tokens: number;
  /** In US dollars, by the price of the agent's model; null: no limit. */
  readonly costUsd: number | null;
  /** Time in which a worker had the run, in milliseconds; waits do not count. Null: no limit. */
  readonly wallMs: number | null;
}

/** What the agent's model costs, in US dollars for a million tokens. */
export interface Price {
  readonly inputUsd: number;
  readonly outputUsd: number;
}

/** A service that is down or turns everybody away for now. */
export interface ClosedService {
  readonly name: string;
  readonly reason: "throttled" | "unavailable";
  readonly sinceMs: number;
  /** Nothing is sent before; after it one run tries, the others wait for how that ends. */
  readonly untilMs: number;
}
