import { OPERATOR_CHOICES } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { problemOf, useTestApi } from "./api-fixture.ts";
import { aRun, callForRefund, claim, move, startRefund, waitForOperator } from "./stage-run.ts";

const api = useTestApi();

const olga = () => api.as("olga-token");

type Choice = (typeof OPERATOR_CHOICES)[number];

/** About a call, which can be skipped. */
const OF_A_CALL = {
  ...{ retry: null, skip: null, abort: null, terminate: null },
  ...{ mark_done: "effect_not_open", not_established: "effect_not_open", retry_now: "choice_not_offered" },
} as const;
/** About the run itself. */
const OF_THE_RUN = { ...OF_A_CALL, skip: "nothing_to_skip" } as const;
/** About an effect of which nobody knows whether it happened. */
const OF_AN_OPEN_EFFECT = { ...OF_A_CALL, skip: "effect_unsettled", mark_done: null, not_established: null } as const;

const BECOMES: Readonly<Partial<Record<Choice, string>>> = {
  ...{ retry: "queued", skip: "queued", abort: "cancelled", terminate: "cancelled" },
};

/** A run that waits for an operator, for this reason. */
async function held(reason: string, isOfACall: boolean) {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const subject = isOfACall ? await callForRefund(api.store, run.id, owner) : null;
  await waitForOperator(api.store, run.id, { workerId: owner.workerId, reason, subject });
  return run.id;
}

/** A run with an effect of which nobody knows, and that cannot be looked up. */
async function unknown() {
  const run = await aRun(api);
  const owner = await claim(api.store, run.id);
  const callId = await callForRefund(api.store, run.id, owner);
  await startRefund(api.store, run.id, { ...owner, callId });
  const event = { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null } as const;
  await move(api.store, { runId: run.id, workerId: owner.workerId, event });
  return run.id;
}

const offered = async (runId: string) => {
  const { actions } = await olga().showRun({ runId });
  return Object.fromEntries(OPERATOR_CHOICES.map((choice) => [choice, actions[choice]]));
};

const openAttempts = async (runId: string) =>
  (await olga().listCalls({ runId })).items.flatMap(({ attempts }) =>
    attempts.flatMap(({ id, state }) => (state === "open" && id !== null ? [id] : [])),
  );

const decide = async (runId: string, choice: Choice) => {
  const attempts = await openAttempts(runId);
  const names = choice === "mark_done" || choice === "not_established" || choice === "terminate" ? { attempts } : {};
  return olga().decideAsOperator({ runId, choice, reason: "as tested", ...names });
};

const REASONS = [
  ["call_failed", OF_A_CALL],
  ["limit_call_deadline", OF_A_CALL],
  ["throttled_too_long", OF_A_CALL],
  ["unavailable_too_long", OF_A_CALL],
  ["equal_effect_unknown", OF_A_CALL],
  ["policy_changed", OF_A_CALL],
  ["settlement_overdue", OF_A_CALL],
  ["incompatible_tool", OF_A_CALL],
  ["deadline_passed", OF_A_CALL],
  ["limit_wall_time", OF_A_CALL],
  ["limit_wall_time", OF_THE_RUN],
  ["limit_turns", OF_THE_RUN],
  ["limit_tokens", OF_THE_RUN],
  ["limit_cost", OF_THE_RUN],
  ["limit_idle", OF_THE_RUN],
  ["invalid_arguments", OF_THE_RUN],
  ["model_failed", OF_THE_RUN],
  ["blocked", OF_THE_RUN],
  ["quarantined", OF_THE_RUN],
  ["agent_error", OF_THE_RUN],
  ["queue_limit", OF_THE_RUN],
  ["late_settlement", OF_THE_RUN],
] as const;

describe("a run that waits for an operator", () => {
  test.each(REASONS)(
    "because of %s is offered exactly %j; the rest is refused with its rule",
    async (reason, choices) => {
      const isOfACall = choices === OF_A_CALL;
      const runId = await held(reason, isOfACall);
      expect(await offered(runId)).toEqual(choices);
      for (const choice of OPERATOR_CHOICES.filter((each) => choices[each] !== null)) {
        const problem = await problemOf(decide(runId, choice));
        expect(problem, choice).toMatchObject({ status: 409, code: "refused", rule: choices[choice] });
      }
      expect(await olga().showRun({ runId })).toMatchObject({ status: "waiting_operator" });
      expect(await decide(runId, "retry")).toMatchObject({ status: "queued" });
    },
  );

  test.each([
    ["call_failed", "retry"],
    ["call_failed", "skip"],
    ["call_failed", "abort"],
    ["call_failed", "terminate"],
    ["limit_turns", "retry"],
    ["limit_turns", "abort"],
  ] as const)("because of %s can be moved by %s, and the history says by whom and why", async (reason, choice) => {
    const runId = await held(reason, reason === "call_failed");
    const run = await decide(runId, choice);
    expect(run).toMatchObject({
      status: BECOMES[choice],
      endReason: choice === "abort" ? "aborted" : choice === "terminate" ? "terminated" : null,
    });
    const { items } = await olga().showTimeline({ runId });
    expect(items.findLast(({ kind }) => kind === "transition")).toMatchObject({
      event: "OperatorDecided",
      actor: { kind: "operator", id: "olga" },
      reason: `${choice}: as tested`,
    });
  });

  test("because nobody knows what an effect did is offered to settle it, and not to skip it", async () => {
    const runId = await unknown();
    expect(await olga().showRun({ runId })).toMatchObject({
      status: "waiting_operator",
      waitingFor: { reason: "outcome_unknown" },
    });
    expect(await offered(runId)).toEqual(OF_AN_OPEN_EFFECT);
    for (const [choice, rule] of [
      ["skip", "effect_unsettled"],
      ["retry_now", "choice_not_offered"],
    ] as const) {
      expect(await problemOf(decide(runId, choice))).toMatchObject({ status: 409, rule });
    }
  });

  test.each([
    ["mark_done", "queued", "happened"],
    ["not_established", "queued", "not_established"],
    ["retry", "outcome_unknown", "open"],
    ["abort", "cancelling", "open"],
    ["terminate", "cancelled", "not_established"],
  ] as const)(
    "because nobody knows what an effect did becomes by %s %s, its attempt %s",
    async (choice, status, state) => {
      const runId = await unknown();
      expect(await decide(runId, choice)).toMatchObject({ status });
      expect((await olga().listCalls({ runId })).items).toMatchObject([{ attempts: [{ state }] }]);
    },
  );

  test("is nobody else's to decide about", async () => {
    const runId = await held("call_failed", true);
    for (const token of ["alice-token", "mona-token"]) {
      const caller = api.as(token);
      const { actions } = await caller.showRun({ runId });
      for (const choice of OPERATOR_CHOICES) {
        expect(actions[choice], choice).toBe("not_yours_to_raise");
        const asked = caller.decideAsOperator({ runId, choice, reason: "mine" });
        expect(await problemOf(asked), choice).toMatchObject({ status: 409, rule: "not_yours_to_raise" });
      }
    }
  });
});
