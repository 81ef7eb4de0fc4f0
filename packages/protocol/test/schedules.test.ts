import { expect, test } from "vitest";
import { ROUTES } from "../src/index.ts";

const { body: create } = ROUTES.createSchedule;
const { body: change } = ROUTES.changeSchedule;
const { body: memory } = ROUTES.putMemory;
const named = { name: "stale-returns", agent: { name: "refunds", version: "1" }, goal: "refund what is stale" };
const hourly = { cron: "0 * * * *", zone: "Europe/Berlin" };

function mistakes(parsed: ReturnType<typeof create.safeParse> | ReturnType<typeof change.safeParse>) {
  return parsed.error?.issues.map(({ path, message }) => [path.join("."), message]);
}

test("a schedule skips slots behind a live run and makes one missed slot up, unless it says otherwise", () => {
  expect(create.parse({ ...named, ...hourly })).toEqual({
    ...named,
    ...hourly,
    overlap: "skip",
    catchUp: { slots: 1, withinMs: 86_400_000 },
  });
  expect(create.parse({ ...named, at: "2026-12-01T09:00:00+01:00", catchUp: { slots: 0 } })).toMatchObject({
    catchUp: { slots: 0, withinMs: 86_400_000 },
  });
});

test.each([
  [{}, "cron", "is missing: say `cron` and `zone`, or `at`"],
  [{ cron: "0 * * * *" }, "zone", "is missing: `cron` is read as the clocks of a zone show it"],
  [{ zone: "UTC" }, "cron", "is missing beside `zone`"],
  [{ ...hourly, at: "2026-12-01T09:00:00Z" }, "at", "cannot stand beside `cron`"],
  [{ at: "2026-12-01T09:00:00Z", zone: "UTC" }, "zone", "is for `cron`; `at` says it itself"],
  [
    { ...hourly, zone: "Europe/Berln" },
    "zone",
    '"Europe/Berln" is no time zone that is known here: use a name like Europe/Berlin',
  ],
  [{ ...hourly, cron: "0 0 31 2 *" }, "cron", '"0 0 31 2 *" names a day that never comes'],
])("%j is refused beside its own field", (timing, field, message) => {
  expect(mistakes(create.safeParse({ ...named, ...timing }))).toEqual([[field, message]]);
});

test("a change says something, and a pattern never without its zone", () => {
  expect(mistakes(change.safeParse({}))).toEqual([["", "says nothing that is to change"]]);
  expect(mistakes(change.safeParse({ cron: "0 9 * * *" }))).toEqual([
    ["zone", "is missing: `cron` is read as the clocks of a zone show it"],
  ]);
  expect(change.parse({ goal: "less" })).toEqual({ goal: "less" });
});

test("a memory is small in bytes, and expires within a year", () => {
  const fact = { key: "language", value: "é".repeat(2_048), validForMs: 60_000 };
  expect(memory.parse(fact)).toEqual(fact);
  for (const wrong of [
    { value: "é".repeat(2_049) },
    { value: " " },
    { key: "two\nlines" },
    { validForMs: 366 * 86_400_000 },
    { validForMs: 59_999 },
    { validForMs: undefined },
  ])
    expect(memory.safeParse({ ...fact, ...wrong }).success).toBe(false);
});
