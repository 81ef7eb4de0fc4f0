import { findSchedule, fireSlot, startQueuedSlot } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { AGENT, problemOf, useTestApi } from "./api-fixture.ts";
import { stored } from "./stage-run.ts";

const api = useTestApi();
const olga = () => api.as("olga-token");
const alice = () => api.as("alice-token");

const HOURLY = { agent: AGENT, goal: "refund what is stale", cron: "0 * * * *", zone: "Europe/Berlin" };

/** What the sweeper does when the schedule's next slot is due; gives the run that it starts. */
async function fire(name: string): Promise<string | null> {
  const found = await findSchedule(api.store, name);
  if (found?.schedule.nextSlotAtMs == null) throw new Error(`${name} has no next slot`);
  const { nextSlotAtMs: slotAtMs } = found.schedule;
  const due = { slotAtMs, missed: [], nextSlotAtMs: slotAtMs + 3_600_000 };
  const fired = await fireSlot(api.store, found.schedule, due);
  return fired.result === "started" ? fired.run.id : null;
}

describe("a schedule", () => {
  test("is created, shown and listed with its next slot, and belongs to who created it", async () => {
    const created = await olga().createSchedule({ name: "stale", ...HOURLY });
    expect(created).toMatchObject({
      ...HOURLY,
      id: expect.stringMatching(/^sch_/),
      name: "stale",
      at: null,
      overlap: "skip",
      catchUp: { slots: 1, withinMs: 86_400_000 },
      paused: null,
      createdBy: "olga",
    });
    expect(Date.parse(created.nextSlotAt ?? "") % 3_600_000).toBe(0);
    expect(await olga().showSchedule({ name: "stale" })).toEqual(created);
    expect((await olga().listSchedules()).items).toContainEqual(created);
  });

  test("is for operators", async () => {
    expect(await problemOf(alice().createSchedule({ name: "mine", ...HOURLY }))).toMatchObject({ status: 403 });
    expect(await problemOf(alice().listSchedules())).toMatchObject({ status: 403 });
    expect(await problemOf(alice().startSchedule({ name: "stale" }))).toMatchObject({ status: 403 });
  });

  test("that cannot be read is refused with what is wrong and where", async () => {
    const badZone = await problemOf(olga().createSchedule({ name: "bad", ...HOURLY, zone: "Europe/Berln" }));
    expect(badZone).toMatchObject({ status: 400, code: "invalid_request" });
    expect(badZone.problem.mistakes).toEqual([
      {
        path: "body.zone",
        message: '"Europe/Berln" is no time zone that is known here: use a name like Europe/Berlin',
      },
    ]);
    const badCron = await problemOf(olga().createSchedule({ name: "bad", ...HOURLY, cron: "61 * * * *" }));
    expect(badCron.problem.mistakes?.[0]).toMatchObject({
      path: "body.cron",
      message: expect.stringContaining("Invalid value for minute: 61"),
    });
    const { cron, zone, ...once } = HOURLY;
    const past = await problemOf(olga().createSchedule({ name: "bad", ...once, at: "2020-01-01T00:00:00Z" }));
    expect(past.problem.mistakes).toEqual([
      { path: "body.at", message: "has passed, by the database's clock: name a later instant" },
    ]);
    const agent = { name: "nobody", version: "9" };
    expect(await problemOf(olga().createSchedule({ name: "bad", ...HOURLY, agent }))).toMatchObject({
      code: "agent_unknown",
    });
    expect(await problemOf(olga().createSchedule({ name: "stale", ...HOURLY }))).toMatchObject({
      status: 409,
      rule: "schedule_exists",
    });
    expect(await problemOf(olga().showSchedule({ name: "bad" }))).toMatchObject({ code: "not_found" });
  });

  test("tells of each slot what became of it, and why", async () => {
    await olga().createSchedule({ name: "told", ...HOURLY });
    const first = await fire("told");
    expect(await fire("told")).toBeNull();
    const { items } = await olga().listSlots({ name: "told" });
    const [skipped, started] = items;
    expect(started).toMatchObject({ state: "started", manual: false, sentence: "Started in its turn.", reason: null });
    expect(stored(started?.runId ?? "")).toBe(first);
    expect(skipped).toMatchObject({
      state: "skipped",
      reason: "earlier_run_live",
      sentence: `Skipped: the earlier run ${started?.runId} had not ended.`,
      earlierRunId: started?.runId,
      runId: null,
    });
    const page = await olga().listSlots({ name: "told", limit: 1 });
    expect(page.items).toEqual([skipped]);
    expect(await olga().listSlots({ name: "told", limit: 1, cursor: page.next ?? "" })).toEqual({
      items: [started],
      next: null,
    });
  });

  test("is started by hand while its run waits; under one key only once, and marked", async () => {
    await olga().createSchedule({ name: "by-hand", ...HOURLY });
    await fire("by-hand");
    const run = await olga().startSchedule({ name: "by-hand" }, { idempotencyKey: "press-1" });
    expect(run).toMatchObject({ status: "queued", requester: "olga", submittedBy: "olga", agent: AGENT });
    expect(await olga().startSchedule({ name: "by-hand" }, { idempotencyKey: "press-1" })).toMatchObject({
      id: run.id,
    });
    const { items } = await olga().listSlots({ name: "by-hand" });
    expect(items.filter(({ manual }) => manual)).toMatchObject([
      { runId: run.id, startedBy: "olga", sentence: "Started by hand by olga." },
    ]);
    const { items: history } = await olga().showTimeline({ runId: run.id });
    expect(JSON.stringify(history)).toContain("schedule by-hand, started by hand");
  });

  test("starts nothing while it is paused, says what it skipped, and goes on with its next slot", async () => {
    await olga().createSchedule({ name: "resting", ...HOURLY, overlap: "queue" });
    await fire("resting");
    await fire("resting");
    expect(await olga().showSchedule({ name: "resting" })).toMatchObject({ queuedSlotAt: expect.any(String) });
    expect(await olga().pauseSchedule({ name: "resting" })).toMatchObject({
      paused: { by: "olga" },
      nextSlotAt: null,
      queuedSlotAt: null,
    });
    expect((await olga().listSlots({ name: "resting" })).items[0]).toMatchObject({
      state: "skipped",
      sentence: "Skipped: the schedule was paused while it waited.",
    });
    const resumed = await olga().resumeSchedule({ name: "resting" });
    expect(resumed.paused).toBeNull();
    expect(Date.parse(resumed.nextSlotAt ?? "") - Date.now()).toBeLessThan(3_700_000);
  });

  test("is changed for the runs to come, each change on record with who made it", async () => {
    await olga().createSchedule({ name: "moving", ...HOURLY });
    const changed = await olga().changeSchedule({ name: "moving", goal: "refund what is late", overlap: "replace" });
    expect(changed).toMatchObject({ goal: "refund what is late", overlap: "replace", cron: HOURLY.cron });
    const later = await olga().changeSchedule({ name: "moving", at: "2999-01-01T00:00:00+02:00" });
    expect(later).toMatchObject({ cron: null, zone: null, at: "2998-12-31T22:00:00.000Z", nextSlotAt: later.at });
    expect(await problemOf(olga().changeSchedule({ name: "moving" }))).toMatchObject({ code: "invalid_request" });
    expect(await problemOf(olga().changeSchedule({ name: "moving", at: "2020-01-01T00:00:00Z" }))).toMatchObject({
      code: "invalid_request",
    });
    const { items } = await olga().listScheduleChanges({ name: "moving" });
    expect(items.map(({ change, by }) => [change, by])).toEqual([
      ["changed", "olga"],
      ["changed", "olga"],
      ["created", "olga"],
    ]);
    expect(items[1]?.definition).toMatchObject({ goal: "refund what is late", overlap: "replace" });
  });

  test("that is deleted starts nothing more, and its name is free", async () => {
    await olga().createSchedule({ name: "short", ...HOURLY });
    await olga().deleteSchedule({ name: "short" });
    expect(await problemOf(olga().showSchedule({ name: "short" }))).toMatchObject({ code: "not_found" });
    expect(await problemOf(olga().startSchedule({ name: "short" }))).toMatchObject({ code: "not_found" });
    expect(await olga().createSchedule({ name: "short", ...HOURLY })).toMatchObject({ name: "short" });
  });

  test("a slot that waited is started once, and its wait is told", async () => {
    await olga().createSchedule({ name: "waiting", ...HOURLY, overlap: "queue" });
    await fire("waiting");
    await fire("waiting");
    const [waiting, first] = (await olga().listSlots({ name: "waiting" })).items;
    expect(waiting?.sentence).toBe(`Waits until the earlier run ${first?.runId} has ended.`);
    await olga().cancelRun({ runId: first?.runId ?? "", reason: "enough" });
    const found = await findSchedule(api.store, "waiting");
    if (found === null) throw new Error("gone");
    expect(await startQueuedSlot(api.store, found.schedule)).not.toBeNull();
    expect(await startQueuedSlot(api.store, found.schedule)).toBeNull();
    expect((await olga().listSlots({ name: "waiting" })).items[0]).toMatchObject({ state: "started" });
  });
});

describe("a memory", () => {
  const fact = { key: "language", value: "Norwegian", validForMs: 86_400_000 };

  test("is kept by its subject or an operator, and is nobody else's to see", async () => {
    const kept = await alice().putMemory(fact);
    expect(kept).toMatchObject({ subject: "alice", key: "language", value: "Norwegian", createdBy: "alice" });
    expect(Date.parse(kept.expiresAt) - Date.parse(kept.createdAt)).toBe(86_400_000);
    const anew = await olga().putMemory({ ...fact, value: "Danish", subject: "alice" });
    expect((await alice().listMemories()).items).toEqual([anew]);
    expect((await olga().listMemories({ subject: "alice" })).items).toEqual([anew]);
    const bob = api.as("bob-token");
    expect((await bob.listMemories()).items).toEqual([]);
    for (const call of [
      () => bob.listMemories({ subject: "alice" }),
      () => bob.putMemory({ ...fact, subject: "alice" }),
    ])
      expect(await problemOf(call())).toMatchObject({ status: 403 });
    expect(await problemOf(bob.deleteMemory({ memoryId: anew.id }))).toMatchObject({ code: "not_found" });
    expect(await alice().deleteMemory({ memoryId: anew.id })).toEqual(anew);
    expect(await problemOf(alice().deleteMemory({ memoryId: anew.id }))).toMatchObject({ code: "not_found" });
    expect((await alice().listMemories()).items).toEqual([]);
  });

  test("has to be small and to expire", async () => {
    const wrong = { ...fact, value: "x".repeat(4_097), validForMs: 400 * 86_400_000 };
    const { problem } = await problemOf(alice().putMemory(wrong));
    expect(problem.mistakes?.map(({ path }) => path)).toEqual(["body.value", "body.validForMs"]);
  });
});
