import fc from "fast-check";
import { TypeID } from "typeid-js";
import { describe, expect, test, vi } from "vitest";
import { ID_PREFIXES, type IdKind, newId, showId, showIds } from "../src/index.ts";

test("ids in a log line are those that the api shows; everything else stays as it is", () => {
  const [runId, workerId] = [newId(), newId()];
  const line = { event: "run.taken_up", runId, workerId, epoch: 2, callId: "not an id", runs: [runId] };
  expect(showIds(line)).toEqual({ ...line, runId: showId("run", runId), workerId: showId("worker", workerId) });
});

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("newId", () => {
  test("makes UUIDv7s of this moment, each after the one before and like no other", () => {
    const before = Date.now();
    const ids = Array.from({ length: 20_000 }, newId);
    const after = Date.now();
    expect(ids.every((id) => UUID_V7.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
    const [first, last] = [ids[0], ids.at(-1)].map((id) =>
      Number.parseInt(`${id}`.replaceAll("-", "").slice(0, 12), 16),
    );
    expect(first).toBeGreaterThanOrEqual(before);
    expect(last).toBeLessThanOrEqual(after);
  });

  test("goes on behind the latest one when the clock is put back", () => {
    const latest = newId();
    vi.useFakeTimers({ now: Date.now() - 3_600_000, toFake: ["Date"] });
    try {
      const next = [newId(), newId()];
      expect([latest, ...next].toSorted()).toEqual([latest, ...next]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("gives no random part twice, beyond what is taken from the system at once", () => {
    const random = Array.from({ length: 2_000 }, () => newId().slice(-10));
    expect(new Set(random).size).toBe(random.length);
  });
});

describe("showId", () => {
  test("writes what the TypeID library writes, and what it reads back", () => {
    fc.assert(
      fc.property(fc.uuid(), fc.constantFrom(...(Object.keys(ID_PREFIXES) as IdKind[])), (id, kind) => {
        const shown = showId(kind, id);
        expect(shown).toBe(TypeID.fromUUID(ID_PREFIXES[kind], id).toString());
        expect(TypeID.fromString(shown).toUUID()).toBe(id);
      }),
    );
  });

  test("takes a UUID in capitals for the same", () => {
    const id = newId();
    expect(showId("run", id.toUpperCase())).toBe(showId("run", id));
  });
});
