import { describe, expect, test } from "vitest";
import { createReplyHolds, HoldRule, isHeldBy } from "../tau-retail/store-service/reply-holds.ts";

const write = { operationId: "op-1", task: "7", tool: "cancel_pending_order", workerPid: 41, ordinal: 0 };
const stays = () => new AbortController().signal;
const rule = (fields: Partial<HoldRule> = {}): HoldRule => ({ seed: "s", share: 1, maxHoldMs: 60_000, ...fields });

describe("isHeldBy", () => {
  const chosen = (seed: string, share: number) =>
    Array.from({ length: 1_000 }, (_, ordinal) => isHeldBy(rule({ seed, share }), { task: "7", ordinal }));

  test("chooses about its share, the same for one seed and others for another", () => {
    const some = chosen("a", 0.3);
    expect(Math.abs(some.filter(Boolean).length - 300)).toBeLessThan(60);
    expect(some).toEqual(chosen("a", 0.3));
    expect(some).not.toEqual(chosen("b", 0.3));
  });

  test("chooses none at 0 and all at 1", () => {
    expect(chosen("a", 0)).not.toContain(true);
    expect(chosen("a", 1)).not.toContain(false);
  });
});

describe("createReplyHolds", () => {
  test("holds nothing before it has a rule", async () => {
    expect(await createReplyHolds().hold(write, stays())).toBeNull();
  });

  test("holds a reply until that one is released", async () => {
    const holds = createReplyHolds();
    holds.setRule(rule());
    const first = holds.hold(write, stays());
    const second = holds.hold({ ...write, operationId: "op-2", ordinal: 1 }, stays());
    expect(holds.list().map((reply) => reply.operationId)).toEqual(["op-1", "op-2"]);
    expect(holds.release("op-2")).toBe(1);
    expect(await second).toBe("released");
    expect(holds.list()).toEqual([{ operationId: "op-1", task: "7", tool: "cancel_pending_order", workerPid: 41 }]);
    expect(holds.release(null)).toBe(1);
    expect(await first).toBe("released");
    expect(holds.counts()).toEqual({ held: 2, released: 2, client_gone: 0, timed_out: 0 });
  });

  test("gives up a reply whose client has gone, and does not begin to hold one", async () => {
    const holds = createReplyHolds();
    holds.setRule(rule());
    const client = new AbortController();
    const reply = holds.hold(write, client.signal);
    client.abort();
    expect(await reply).toBe("client_gone");
    expect(await holds.hold(write, client.signal)).toBeNull();
    expect(holds.list()).toEqual([]);
    expect(holds.counts()).toMatchObject({ held: 1, client_gone: 1 });
  });

  test("lets a reply go when its time is over", async () => {
    const holds = createReplyHolds();
    holds.setRule(rule({ maxHoldMs: 1 }));
    expect(await holds.hold(write, stays())).toBe("timed_out");
  });
});

describe("HoldRule", () => {
  test.each([
    { seed: "s", share: 1.1 },
    { seed: "", share: 0 },
    { seed: "s", share: 0, maxHoldMs: 600_001 },
  ])("refuses %j", (fields) => {
    expect(HoldRule.safeParse(fields).success).toBe(false);
  });
});
