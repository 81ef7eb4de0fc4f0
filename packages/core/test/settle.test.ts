import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backoffMs, judgeLookUp, type LookUpAnswer, pollDelayMs, takeOver } from "../src/settle.ts";
import type { EffectProperties } from "../src/step.ts";
import { aCall, anAttempt, anEffect, READ } from "./builders.ts";

const KEY = { keyValidForMs: 1_000 };
const LOOK_UP = { lookUpSettlesWithinMs: 60_000 };
const attempt = anAttempt("call_1", { deadlineAtMs: 10_000, keyFirstUsedAtMs: 100 });

function callWith(effect: EffectProperties) {
  return aCall(1, { effect, timeoutMs: 50 });
}

describe("takeOver", () => {
  test.each([
    ["a look-up", LOOK_UP, 0, { do: "look_up" }],
    ["both", { ...KEY, ...LOOK_UP }, 0, { do: "look_up" }],
    ["a key that outlasts the call", KEY, 1_049, { do: "repeat" }],
    ["a key that the call may outlast", KEY, 1_050, { do: "ask_a_person", reason: "key_expired" }],
    ["neither", {}, 0, { do: "ask_a_person", reason: "unsafe" }],
  ] as const)("goes by what the tool offers: %s", (_name, offered, nowMs, takenOver) => {
    const call = callWith(anEffect(offered));
    expect(takeOver({ call, attempt, nowMs, mayStart: true })).toEqual(takenOver);
  });

  test("repeats nothing where nothing may start, and nothing that was turned down", () => {
    const call = callWith(anEffect(KEY));
    const over = (patch: { mayStart?: boolean; repeatRefused?: boolean }) =>
      takeOver({
        call,
        attempt: { ...attempt, repeatRefused: patch.repeatRefused ?? false },
        nowMs: 0,
        mayStart: patch.mayStart ?? true,
      });
    expect(over({ mayStart: false })).toEqual({ do: "ask_a_person", reason: "may_not_start" });
    expect(over({ repeatRefused: true })).toEqual({ do: "ask_a_person", reason: "repeat_refused" });
  });

  test("has no business with what is no effect", () => {
    expect(() => takeOver({ call: callWith(READ), attempt, nowMs: 0, mayStart: true })).toThrow(
      "Call call_1 is no effect: it has no open attempts",
    );
  });
});

describe("judgeLookUp", () => {
  const judge = (answer: LookUpAnswer, offered: Parameters<typeof anEffect>[0], nowMs: number, lookUps = 0) =>
    judgeLookUp(answer, { call: callWith(anEffect(offered)), attempt, nowMs, lookUps, mayStart: true });

  test("takes a yes at once", () => {
    expect(judge("happened", LOOK_UP, 0)).toEqual({ do: "settle", finding: "happened" });
  });

  test("takes a no only when the bytes of a dead process cannot arrive any more", () => {
    expect(judge("did_not_happen", LOOK_UP, 69_000)).toEqual({ do: "look_again", inMs: 1_001 });
    expect(judge("did_not_happen", LOOK_UP, 70_000)).toEqual({ do: "look_again", inMs: 1 });
    expect(judge("did_not_happen", LOOK_UP, 70_001)).toEqual({ do: "settle", finding: "did_not_happen" });
  });

  test("repeats under a valid key instead of waiting for the no to count", () => {
    expect(judge("did_not_happen", { ...KEY, ...LOOK_UP }, 1_049)).toEqual({ do: "repeat" });
    expect(judge("did_not_happen", { ...KEY, ...LOOK_UP }, 1_050)).toEqual({ do: "look_again", inMs: 68_951 });
  });

  test("waits for the no to count where nothing may start, and where a repeat was turned down", () => {
    const call = callWith(anEffect({ ...KEY, ...LOOK_UP }));
    const open = { call, attempt, nowMs: 0, lookUps: 0, mayStart: true };
    const waits = { do: "look_again", inMs: 70_001 };
    expect(judgeLookUp("did_not_happen", { ...open, mayStart: false })).toEqual(waits);
    const refused = { ...attempt, repeatRefused: true };
    expect(judgeLookUp("did_not_happen", { ...open, attempt: refused })).toEqual(waits);
    expect(judgeLookUp("did_not_happen", { ...open, attempt: refused, nowMs: 70_001 })).toEqual({
      do: "settle",
      finding: "did_not_happen",
    });
  });

  test("counts from the call's deadline where no settle time is declared", () => {
    expect(judge("did_not_happen", {}, 10_001)).toEqual({ do: "settle", finding: "did_not_happen" });
  });

  test.each(["still_pending", "unknown"] as const)("looks again, less and less often: %s", (answer) => {
    const waits = [0, 1, 2, 10].map((lookUps) => judge(answer, { ...KEY, ...LOOK_UP }, 0, lookUps));
    expect(waits).toEqual([2_000, 4_000, 8_000, 300_000].map((inMs) => ({ do: "look_again", inMs })));
  });

  test("never takes a no before its time", () => {
    fc.assert(
      fc.property(fc.nat(200_000), fc.nat(100_000), (nowMs, lookUpSettlesWithinMs) => {
        const settlement = judge("did_not_happen", { lookUpSettlesWithinMs }, nowMs);
        const wait = settlement.do === "look_again" ? settlement.inMs : 0;
        expect(nowMs + wait).toBeGreaterThan(attempt.deadlineAtMs + lookUpSettlesWithinMs);
      }),
    );
  });

  test("has no business with what is no effect", () => {
    const of = { call: callWith(READ), attempt, nowMs: 0, lookUps: 0, mayStart: true };
    expect(() => judgeLookUp("unknown", of)).toThrow("Call call_1 is no effect: it has no open attempts");
  });
});

describe("backoffMs", () => {
  test("doubles up to its cap, however often it is asked", () => {
    const backoff = { firstMs: 100, capMs: 1_000 };
    expect([0, 1, 2, 3, 4, 5, 10_000].map((tries) => backoffMs(tries, backoff))).toEqual([
      100, 200, 400, 800, 1_000, 1_000, 1_000,
    ]);
  });
});

describe("pollDelayMs", () => {
  const [minute, hour] = [60_000, 3_600_000];

  test("grows rarer with the time, from the tool's own shortest wait to six hours", () => {
    const delays = [0, minute, 4 * minute, 8 * minute, 24 * hour, 1_000 * hour].map((ms) => pollDelayMs(ms, minute));
    expect(delays).toEqual([minute, minute, minute, 2 * minute, 6 * hour, 6 * hour]);
  });

  test("is never shorter than the tool allows, nor half a millisecond", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -1_000, max: 2 ** 40 }),
        fc.integer({ min: 1, max: 2 ** 31 }),
        (waitedMs, everyMs) => {
          const delayMs = pollDelayMs(waitedMs, everyMs);
          expect(Number.isInteger(delayMs)).toBe(true);
          expect(delayMs).toBeGreaterThanOrEqual(everyMs);
          expect(delayMs).toBeLessThanOrEqual(Math.max(everyMs, 6 * hour));
          expect(pollDelayMs(waitedMs + 1, everyMs)).toBeGreaterThanOrEqual(delayMs);
        },
      ),
    );
  });
});
