import fc from "fast-check";
import type { Appended } from "../src/history.ts";
import { MIGRATION_SUBJECT } from "../src/run-totals.ts";
import type { Approval, Call, Child, EffectProperties, LineEffect, Step, StepBody, Verdict } from "../src/step.ts";
import {
  aCall,
  aChild,
  aClosedService,
  aDenial,
  aFact,
  aLineEffect,
  anApproval,
  anEffect,
  anOrder,
  aReply,
  aResult,
  BLOCKED,
  childRuns,
  endedWith,
  type InputPatch,
  NEEDS_APPROVAL,
  NOW_MS,
  READ,
  SUCCEEDED,
} from "./builders.ts";

// Histories as commits make them, step by step, and all that is beside them when somebody plans: anything that rows can
// hold, whether or not a run would ever get there.

/** A history as it was committed, and what it is planned with. */
export interface RandomRun {
  readonly commits: readonly Appended[];
  readonly beside: Omit<InputPatch, "steps" | "calls">;
}

const EFFECTS: readonly EffectProperties[] = [
  READ,
  anEffect(),
  anEffect({ equalCallsAreDistinct: true }),
  anEffect({ settlement: { everyMs: 1_000, withinMs: 9_000 } }),
  { kind: "timer" },
  childRuns({ onBlocked: "tell" }),
];
const VERDICTS: readonly Verdict[] = [
  { kind: "allowed" },
  { kind: "allowed" },
  NEEDS_APPROVAL,
  { kind: "denied", rule: "no", message: "No." },
  { kind: "invalid", message: "Not so." },
];
const RESULTS = [
  "succeeded",
  "succeeded",
  "partial",
  "failed",
  "invalid",
  "denied",
  "rejected",
  "expired",
  "skipped",
  "answered",
  "not_established",
  "answered_from_record",
] as const;
const TOOLS = ["find_order", "refund"] as const;
const HASHES = ["hash_a", "hash_b", "hash_c"] as const;

const newCall = fc.record({
  tool: fc.constantFrom(...TOOLS),
  argsHash: fc.constantFrom(...HASHES),
  effect: fc.constantFrom(...EFFECTS),
  verdict: fc.constantFrom(...VERDICTS),
  retries: fc.nat(2),
});

const errorClass = fc.constantFrom("transient", "throttled", "caller", "refused" as const);
const retryInMs = fc.constantFrom(0, 500, 70_000);
const probe = fc.constantFrom({}, { probe: true as const });

/** A step about call `callId`. */
const ABOUT_A_CALL: readonly fc.Arbitrary<(callId: string) => StepBody>[] = [
  fc.constantFrom(...RESULTS).map((result) => (callId) => aResult(callId, { result, output: `${result}.` })),
  fc.constant((callId) => ({ kind: "finding", callId, output: null })),
  fc.nat(9).map((output) => (callId) => ({ kind: "effect_pending", callId, output })),
  fc.constantFrom(-1, 1).map((sign) => (callId) => ({ kind: "timer_set", callId, dueAtMs: NOW_MS + sign })),
  fc.integer({ min: 1, max: 4 }).map((attempt) => (callId) => ({ kind: "intent", callId, attempt })),
  fc
    .record({ attempt: fc.integer({ min: 1, max: 4 }), errorClass, retryInMs, probe })
    .map(({ probe: probed, ...failed }) => (callId) => ({
      kind: "call_failed",
      callId,
      code: "timeout",
      ...failed,
      ...probed,
    })),
  fc
    .constantFrom({}, { code: "lost" })
    .map((code) => (callId) => ({ kind: "did_not_happen", callId, attempt: 1, ...code })),
  fc
    .record({ try: fc.integer({ min: 1, max: 2 }), ordinals: fc.constantFrom([0], [1], [0, 1]), total: fc.constant(2) })
    .map((started) => (callId) => ({ kind: "children_started", callId, ...started })),
  fc.constantFrom({}, { failed: true as const }).map((failed) => (callId) => ({ kind: "callback", callId, ...failed })),
  fc.constantFrom("retry", "skip" as const).map((choice) => (callId) => anOrder(choice, callId)),
];

const OF_THE_RUN: readonly fc.Arbitrary<StepBody>[] = [
  fc.constant({ kind: "message", from: "user:ann", text: "hello" }),
  fc.constant({ kind: "no_answer" }),
  fc
    .record({ errorClass, retryInMs, probe })
    .map(({ probe: probed, ...failed }) => ({ kind: "model_failed", code: "overloaded", ...failed, ...probed })),
  fc.constantFrom("1", "2").map((version) => ({ kind: "migration", version, by: "olga" })),
  fc.constantFrom(anOrder("retry", null), anOrder("skip", MIGRATION_SUBJECT), anOrder("retry", "@result")),
];

interface Turn {
  readonly asks: "model" | "graph";
  readonly calls: readonly Omit<Call, "id">[];
}

const turn: fc.Arbitrary<Turn> = fc.record({
  asks: fc.constantFrom("model", "graph" as const),
  calls: fc.array(newCall, { maxLength: 3 }).map((list) => list.map((each, ordinal) => aCall(ordinal, each))),
});

const about = fc.record({ make: fc.oneof(...ABOUT_A_CALL), pick: fc.nat(11) });

type Act =
  | { readonly turn: Turn }
  | { readonly about: { readonly make: (callId: string) => StepBody; readonly pick: number } }
  | { readonly body: StepBody };

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 2, arbitrary: turn.map((each) => ({ turn: each })) },
  { weight: 7, arbitrary: about.map((each) => ({ about: each })) },
  { weight: 2, arbitrary: fc.oneof(...OF_THE_RUN).map((body) => ({ body })) },
);

/** What each act commits; every one is a second after that before it. */
function commitsOf(acts: readonly Act[]): readonly Appended[] {
  const known: Call[] = [];
  return acts.map((each, index): Appended => {
    const step = (body: StepBody): readonly Step[] => [{ seq: index + 1, atMs: NOW_MS - 60_000 + index * 1_000, body }];
    if ("body" in each) return { steps: step(each.body) };
    if ("about" in each) {
      const call = known[each.about.pick % Math.max(1, known.length)];
      return { steps: step(each.about.make(call?.id ?? "@nothing/1")) };
    }
    const number = index + 1;
    const calls = each.turn.calls.map((call, ordinal) => ({ ...call, id: `${number}/${ordinal}`, turn: number }));
    known.push(...calls);
    const callIds = calls.map(({ id }) => id);
    const started: StepBody = { kind: "nodes_started", turn: number, callIds, nodes: [] };
    const reply = aReply(callIds, { turn: number, outcome: index % 2 === 0 ? SUCCEEDED : null });
    return { calls, steps: step(each.turn.asks === "graph" ? started : reply) };
  });
}

const approvalOf = fc.record({
  pick: fc.nat(11),
  state: fc.constantFrom("pending", "approved", "spent", "rejected", "expired", "skipped", "answered" as const),
  editedBy: fc.constantFrom(null, null, "user:bob"),
  argsHash: fc.constantFrom(null, ...HASHES),
});
const childOf = fc.record({
  pick: fc.nat(11),
  ordinal: fc.nat(1),
  try: fc.integer({ min: 1, max: 2 }),
  ends: fc.constantFrom({}, endedWith(SUCCEEDED), endedWith(BLOCKED), { ended: true, status: "failed" } as const),
});
const lineEffectOf = fc.record({
  tool: fc.constantFrom(...TOOLS),
  argsHash: fc.constantFrom(...HASHES),
  result: fc.constantFrom(...RESULTS),
});

/** Any history, and anything beside it. */
export const randomRun: fc.Arbitrary<RandomRun> = fc
  .record({
    acts: fc.array(act, { maxLength: 24 }),
    approvals: fc.array(approvalOf, { maxLength: 4 }),
    children: fc.array(childOf, { maxLength: 4 }),
    lineEffects: fc.array(lineEffectOf, { maxLength: 2 }),
    isGraph: fc.boolean(),
    isDenied: fc.constantFrom(true, false, false, false),
    isClosed: fc.constantFrom(true, false, false, false),
    unread: fc.constantFrom(0, 0, 1),
    turns: fc.constantFrom(2, 50),
  })
  .map(({ acts, isGraph, ...given }) => {
    const commits = commitsOf(acts);
    const calls = commits.flatMap((each) => each.calls ?? []);
    const callAt = (pick: number) => calls[pick % Math.max(1, calls.length)] ?? aCall(0);
    const approvals = given.approvals.map(({ pick, argsHash, ...rest }, index): Approval => {
      const call = callAt(pick);
      return anApproval(call, { id: `approval_${index}`, ...rest, argsHash: argsHash ?? call.argsHash });
    });
    const children = given.children.map(
      ({ pick, ends, ...place }, index): Child => aChild(index, { callId: callAt(pick).id, ...place, ...ends }),
    );
    const lineEffects = given.lineEffects.map((each): LineEffect => aLineEffect(aCall(0), each));
    const beside = {
      approvals,
      children,
      lineEffects,
      isGraph,
      denials: given.isDenied ? [aDenial("refund")] : [],
      services: given.isClosed ? [aClosedService()] : [],
      unread: given.unread === 0 ? [] : [aFact()],
      liveChildren: children.filter(({ ended }) => !ended).length,
      limits: { turns: given.turns, tokens: 1_000, costUsd: null, wallMs: null },
    };
    return { commits, beside };
  });
