import { Memory, Run, Schedule, Slot } from "@holdpoint/protocol";
import { findSchedule, fireSlot } from "@holdpoint/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});
afterAll(() => desk[Symbol.asyncDispose]());

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });

/** What a command printed with --json, as the api's own schema reads it. */
async function json<T>(schema: z.ZodType<T>, user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<T> {
  const { exitCode, out, err } = await as(user, ...argv, "--json");
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

const Page = z.object({ schedule: Schedule, slots: z.object({ items: z.array(Slot), next: z.string().nullable() }) });
const olga = (...argv: readonly string[]) => as("olga", "schedules", ...argv);
const DAILY = ["--cron", "30 9 * * MON-FRI", "--zone", "Europe/Berlin"] as const;

/** What the sweeper does when the schedule's next slot is due. */
async function fire(name: string): Promise<void> {
  const found = await findSchedule(desk.store, name);
  if (found?.schedule.nextSlotAtMs == null) throw new Error(`${name} has no next slot`);
  const { nextSlotAtMs: slotAtMs } = found.schedule;
  const fired = await fireSlot(desk.store, found.schedule, {
    slotAtMs,
    missed: [{ slotAtMs: slotAtMs - 86_400_000, reason: "too_old" }],
    nextSlotAtMs: slotAtMs + 86_400_000,
  });
  expect(fired.result).not.toBe("conflict");
}

describe("schedules", () => {
  test("create, show, list: when it starts what, for whom, and what it makes up", async () => {
    const { out, err } = await olga("create", "stale", "clerk@1", "pay the bill", ...DAILY, "--catch-up", "2");
    expect(err).toBe("");
    expect(out).toMatch(
      /^stale\nAgent +clerk@1, for olga\nGoal +pay the bill\nWhen +30 9 \* \* MON-FRI Europe\/Berlin\n/,
    );
    expect(out).toMatch(/\nMakes up +2 at most, no older than 24 h\n/);
    expect((await olga("list")).out).toMatch(
      /^NAME +WHEN +NEXT +OVERLAP +GOAL\nstale +30 9 .*Europe\/Berlin +(in \d+ \S+|now) +skip +pay the bill\n/,
    );
    expect((await olga("show", "stale")).out).toContain("no slots yet");
    const once = await json(
      Schedule,
      "olga",
      "schedules",
      "create",
      "later",
      "clerk@1",
      "pay",
      "--at",
      "2999-12-24T09:00:00Z",
    );
    expect(once).toMatchObject({ cron: null, at: "2999-12-24T09:00:00.000Z", nextSlotAt: once.at });
  });

  test("show says of each slot what became of it and why", async () => {
    await olga("create", "told", "clerk@1", "pay the bill", ...DAILY);
    await fire("told");
    await fire("told");
    const { slots } = await json(Page, "olga", "schedules", "show", "told");
    expect(slots.items.map(({ state }) => state)).toEqual(["skipped", "started", "missed"]);
    const started = slots.items[1]?.runId ?? "";
    const { out } = await olga("show", "told");
    expect(out).toMatch(/\nSLOT +STATE +RUN +WHY\n/);
    expect(out).toMatch(/ skipped +Skipped: the earlier run\n/);
    expect(out).toMatch(new RegExp(` started +${started} +Started in its turn\\.\\n`));
    expect(out).toMatch(/ missed +Missed: nobody was there to start it/);
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect((await olga("show", "told", "--limit", "1")).out).toContain("there are more");
  });

  test("run starts one by hand, marked as such, and once under one key", async () => {
    await olga("create", "by-hand", "clerk@1", "pay the bill", ...DAILY);
    const key = ["--idempotency-key", "press-1"];
    const first = await json(Run, "olga", "schedules", "run", "by-hand", ...key);
    expect((await json(Run, "olga", "schedules", "run", "by-hand", ...key)).id).toBe(first.id);
    expect((await olga("show", "by-hand")).out).toMatch(
      new RegExp(` started, manual +${first.id} +Started by hand by olga\\.`),
    );
  });

  test("pause, resume, change and delete say what is so now", async () => {
    await olga("create", "steered", "clerk@1", "pay the bill", ...DAILY);
    expect((await olga("pause", "steered")).out).toMatch(/\nPaused +by olga, /);
    expect((await olga("list")).out).toMatch(/steered .* paused /);
    expect((await olga("resume", "steered")).out).toMatch(/\nNext slot +20/);
    const changed = await olga(
      "change",
      "steered",
      "--overlap",
      "queue",
      "--goal",
      "pay less",
      "--catch-up-within",
      "6h",
    );
    expect(changed.out).toMatch(/\nGoal +pay less\n[\s\S]*\nOverlap +queue\nMakes up +1 at most, no older than 6 h\n/);
    expect((await olga("delete", "steered")).out).toBe("deleted: steered\n");
    expect(await olga("show", "steered")).toMatchObject({
      exitCode: 3,
      err: expect.stringContaining("no such schedule"),
    });
  });

  test.each([
    [["--cron", "61 * * * *", "--zone", "UTC"], "Invalid value for minute: 61"],
    [["--cron", "0 9 * * *", "--zone", "Europe/Berln"], '"Europe/Berln" is no time zone that is known here'],
    [["--cron", "0 9 * * *"], "body.zone: is missing"],
    [["--at", "2020-01-01T00:00:00Z"], "has passed"],
    [[], "say `cron` and `zone`, or `at`"],
    [[...DAILY, "--overlap", "both"], "must be one of skip, queue, replace"],
    [[...DAILY, "--catch-up", "many"], "whole number from 0 to 100"],
    [[...DAILY, "--catch-up-within", "soon"], "like 30m, 24h or 90d"],
  ])("create with %j says what is wrong, and ends with 2", async (options, said) => {
    const { exitCode, out, err } = await olga("create", "wrong", "clerk@1", "pay", ...options);
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: "" });
    expect(err).toContain(said);
  });

  test("are for operators", async () => {
    expect(await as("alice", "schedules", "list")).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("operators"),
    });
  });
});

test("memories are put, listed and deleted", async () => {
  const put = await json(Memory, "alice", "memories", "put", "language", "Norwegian", "--for", "30d");
  expect(put).toMatchObject({ subject: "alice", key: "language", value: "Norwegian", createdBy: "alice" });
  const { out } = await as("olga", "memories", "list", "--subject", "alice");
  expect(out).toMatch(/^MEMORY +OF +KEY +EXPIRES +BY +VALUE\n/);
  expect(out).toMatch(new RegExp(`${put.id} +alice +language +in (29|30) d +alice +Norwegian\\n`));
  expect((await as("alice", "memories", "delete", put.id)).out).toMatch(
    /^deleted: mem_\w+ of alice: language = Norwegian, until /,
  );
  expect((await as("alice", "memories", "list")).out).toBe("no memories\n");
  expect(await as("alice", "memories", "put", "a", "b")).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining("--for"),
  });
  expect(await as("alice", "memories", "put", "a", "b", "--for", "400d")).toMatchObject({ exitCode: 2 });
});
