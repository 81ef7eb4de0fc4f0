// Calls that have no row of their own: they stand in the step of the reply that asked for them, each in short.

import {
  type Call,
  canonicalJson,
  isPartOfReply,
  type JsonValue,
  type Step,
  type StepBody,
  storable,
} from "@holdpoint/core";
import { hashArgs } from "./hash-args.ts";
import { operationIdOf } from "./ids.ts";

/** What a call is that says nothing else. Stored calls rely on it, as does the view `all_calls`: it never changes. */
const COMMON = { verdict: "allowed", timeoutMs: 30_000, retries: 1, throttledForMs: 172_800_000 } as const;

const serviceOf = (tool: string): string => `tool:${tool}`;

type Different = Partial<
  Pick<Call, "ordinal" | "operationId" | "verdict" | "timeoutMs" | "retries" | "throttledForMs" | "service">
>;

/**
 * A call as its step has it: the model's name for it, its tool, its arguments as canonical JSON, and what is not as it is
 * with most calls. The step says the rest: its turn, and by their places the ids and ordinals of its calls.
 */
export type ReplyCall =
  | readonly [toolCallId: string, tool: string, args: string]
  | readonly [toolCallId: string, tool: string, args: string, different: Different];

/** The calls of a step by the places of its `callIds`; null where a call has a row of its own. */
export type ReplyCalls = readonly (ReplyCall | null)[];

/** The calls of a commit, each where it is stored. */
export interface PlacedCalls {
  /** Those that get a row of their own. */
  readonly rows: readonly Call[];
  /** For each step those that stand in it; empty where none does. */
  readonly ofSteps: readonly (ReplyCalls | null)[];
}

const NONE: PlacedCalls = { rows: [], ofSteps: [] };

/** Says of the calls that come with steps where each is stored. One that no step has asked for gets a row in any case. */
export function placeCalls(steps: readonly StepBody[], calls: readonly Call[] | undefined): PlacedCalls {
  if (calls === undefined || calls.length === 0) return NONE;
  const parts = new Map<string, Call>();
  for (const call of calls) if (isPartOfReply(call)) parts.set(call.id, call);
  if (parts.size === 0) return { rows: calls, ofSteps: [] };
  const others = calls.length - parts.size;
  const ofSteps = steps.map((step) => takeThose(parts, step));
  const areAllTaken = others === 0 && parts.size === 0;
  return { rows: areAllTaken ? [] : calls.filter((call) => !isPartOfReply(call) || parts.has(call.id)), ofSteps };
}

/** The calls for which the step has asked, which are left over no more. */
function takeThose(left: Map<string, Call>, step: StepBody): ReplyCalls | null {
  if (!("callIds" in step) || left.size === 0) return null;
  let found = false;
  const calls = step.callIds.map((id, place) => {
    const call = left.get(id);
    if (call === undefined || call.turn !== step.turn) return null;
    left.delete(id);
    found = true;
    return inShort(call, place);
  });
  return found ? calls : null;
}

function inShort(call: Call, place: number): ReplyCall {
  const { toolCallId, tool } = call;
  const args = canonicalJson(storable(call.args));
  const different = differences(call, place);
  return different === null ? [toolCallId, tool, args] : [toolCallId, tool, args, different];
}

/** Null for what is as most calls are: those are looked at and nothing is made for them. */
function differences(call: Call, place: number): Different | null {
  const { ordinal, operationId, verdict, timeoutMs, retries, throttledForMs, service } = call;
  const isOwn = operationId === operationIdOf(call.id);
  const isAllowed = verdict.kind === COMMON.verdict;
  const isTimed = timeoutMs === COMMON.timeoutMs && throttledForMs === COMMON.throttledForMs;
  const isServed = service === serviceOf(call.tool);
  if (ordinal === place && isOwn && isAllowed && isTimed && isServed && retries === COMMON.retries) return null;
  return {
    ...(ordinal === place ? {} : { ordinal }),
    ...(isOwn ? {} : { operationId }),
    ...(isAllowed ? {} : { verdict }),
    ...(isTimed ? {} : { timeoutMs, throttledForMs }),
    ...(retries === COMMON.retries ? {} : { retries }),
    ...(isServed ? {} : { service }),
  };
}

/** A step as it is loaded, with the calls that stand in it. */
export type StoredStep = Step & { readonly calls?: ReplyCalls };

/** The calls that stand in a step, as whoever committed them had them. */
export function callsIn({ body, calls }: StoredStep): readonly Call[] {
  if (calls === undefined || !("callIds" in body)) return [];
  return calls.flatMap((call, place) => {
    const id = body.callIds[place];
    return call === null || id === undefined ? [] : [wholeCall(call, { id, turn: body.turn, ordinal: place })];
  });
}

function wholeCall(
  [toolCallId, tool, text, different = {}]: ReplyCall,
  at: Pick<Call, "id" | "turn" | "ordinal">,
): Call {
  // The text is canonical JSON that this store wrote.
  const args = JSON.parse(text) as JsonValue;
  return {
    ...at,
    toolCallId,
    tool,
    args,
    argsHash: hashArgs(tool, args),
    operationId: operationIdOf(at.id),
    effect: { kind: "read" },
    verdict: { kind: COMMON.verdict },
    timeoutMs: COMMON.timeoutMs,
    retries: COMMON.retries,
    throttledForMs: COMMON.throttledForMs,
    service: serviceOf(tool),
    ...different,
  };
}
