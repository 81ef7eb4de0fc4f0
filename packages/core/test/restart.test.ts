import { describe, expect, test } from "vitest";
import { describeLoss, EFFECT_CLASSES, effectClass, foreseeLoss } from "../src/restart.ts";
import type { EffectProperties } from "../src/step.ts";
import { aCall, anAttempt, aRun } from "./builders.ts";

const EFFECT = {
  kind: "effect",
  keyValidForMs: null,
  lookUpSettlesWithinMs: null,
  equalCallsAreDistinct: false,
  settlement: null,
} as const;
const KEY: EffectProperties = { ...EFFECT, keyValidForMs: 60_000 };
const LOOK_UP: EffectProperties = { ...EFFECT, lookUpSettlesWithinMs: 1_000 };
const CHILDREN: EffectProperties = {
  kind: "children",
  wait: "all",
  atOnce: 1,
  onBlocked: "tell",
  equalCallsAreDistinct: false,
  withinMs: 1,
};

test("every effect has a class, by what the other side offers", () => {
  const effects = [
    { kind: "read" },
    { kind: "timer" },
    CHILDREN,
    KEY,
    LOOK_UP,
    { ...KEY, lookUpSettlesWithinMs: 1_000 },
    EFFECT,
  ] as const satisfies readonly EffectProperties[];
  expect(effects.map(effectClass)).toEqual(EFFECT_CLASSES);
});

describe("what becomes of a run whose owner goes", () => {
  const how = { reason: "taken_over", actor: { kind: "operator", id: "olga" } } as const;
  const open = (
    effect: EffectProperties,
    more: { mayStart?: boolean; repeatRefused?: boolean; nowMs?: number } = {},
  ) => {
    const call = aCall(0, { effect, timeoutMs: 1_000 });
    const attempt = anAttempt(call.id, {
      id: "a1",
      keyFirstUsedAtMs: 0,
      repeatRefused: more.repeatRefused ?? false,
    });
    return { call, attempt, nowMs: more.nowMs ?? 500, mayStart: more.mayStart ?? true };
  };

  test("with nothing open it is queued for another", () => {
    const foreseen = foreseeLoss(aRun("running"), [], how);
    expect(foreseen).toMatchObject({ becomes: { status: "queued", owner: null, lostReason: "taken_over" }, calls: [] });
  });

  test("with a call open it is never queued: what happened has to be found out first", () => {
    const foreseen = foreseeLoss({ ...aRun("running"), openAttempts: 1 }, [open(LOOK_UP)], how);
    expect(foreseen.becomes).toMatchObject({ status: "outcome_unknown", owner: null, openAttempts: 1 });
    expect(foreseen.calls).toEqual([
      {
        attemptId: "a1",
        way: { do: "look_up" },
        text: "the next worker asks the other side whether it happened, and goes on only with its answer",
      },
    ]);
  });

  test.each([
    ["a key", open(KEY), "the next worker sends it again under the same key, and the other side acts once"],
    ["neither", open(EFFECT), "the other side offers neither a look-up nor a key: an operator is asked"],
    ["an old key", open(KEY, { nowMs: 60_000 }), "the other side may not know its key any more: an operator is asked"],
    [
      "a key turned down",
      open(KEY, { repeatRefused: true }),
      "the other side has turned a repeat down: an operator is asked",
    ],
    [
      "a key and a stop",
      open(KEY, { mayStart: false }),
      "it may not be sent again now (a stop, a pause, or its approval is over): an operator is asked",
    ],
  ] as const)("with %s it is settled so", (_offer, call, text) => {
    const { calls } = foreseeLoss({ ...aRun("running"), openAttempts: 1 }, [call], how);
    expect(calls.map((each) => each.text)).toEqual([text]);
  });

  test("a run that nobody has stays as it is", () => {
    for (const status of ["queued", "waiting_input", "paused", "completed"] as const) {
      expect(foreseeLoss(aRun(status), [], how).becomes).toEqual(aRun(status));
    }
  });

  test("a third loss in a row asks an operator instead of a fourth worker", () => {
    const { becomes } = foreseeLoss({ ...aRun("running"), takeovers: 2 }, [], how);
    expect(becomes).toMatchObject({ status: "waiting_operator", waitingFor: { reason: "quarantined" } });
  });

  test("is told in words", () => {
    const asked = { cancelRequestedAt: { at: 1 } } as const;
    const words = (
      run: ReturnType<typeof aRun>,
      calls: Parameters<typeof foreseeLoss>[1] = [],
      step: string | null = null,
    ) => describeLoss(foreseeLoss(run, calls, how), step);
    const running = aRun("running");
    expect(words(running)).toBe("another worker goes on from the last stored step");
    expect(words(running, [], "find_order")).toMatch(/; find_order is begun anew$/);
    expect(words({ ...running, openAttempts: 1 }, [open(LOOK_UP)])).toMatch(
      /^nothing is begun before .*asks the other side/,
    );
    expect(words({ ...running, takeovers: 2 })).toBe("an operator is asked (quarantined)");
    expect(words({ ...running, pauseRequestedAt: { at: 1 } })).toBe("it is paused, as it was asked to be");
    expect(words(aRun("cancelling", { owner: "w1", openAttempts: 0, nextReconcileAt: null }))).toBe(
      "it has stopped, as it was asked to",
    );
    const stopping = aRun("cancelling", {
      owner: "w1",
      openAttempts: 0,
      liveChildren: 1,
      nextReconcileAt: null,
      ...asked,
    });
    expect(words(stopping)).toMatch(/its child runs are waited for$/);
    expect(words(aRun("queued"))).toBe("another worker goes on from the last stored step");
    expect(words(aRun("waiting_input"))).toBe("it stays as it is");
    const nameless = { becomes: { ...aRun("waiting_operator"), waitingFor: null }, calls: [] };
    expect(describeLoss(nameless, null)).toBe("an operator is asked (unknown)");
  });
});
