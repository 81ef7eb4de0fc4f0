import { describe, expect, test } from "vitest";
import { nextSlot, patternMistake } from "../src/index.ts";

/** The slots after a moment, in UTC: `03-29 01:00`. */
function slots(cron: string, zone: string, { after, count }: { after: string; count: number }): readonly string[] {
  const found: string[] = [];
  let atMs = Date.parse(after);
  while (found.length < count) {
    const next = nextSlot({ cron, zone }, atMs);
    if (next === null) break;
    expect(next).toBeGreaterThan(atMs);
    found.push(new Date(next).toISOString().slice(5, 16).replace("T", " "));
    atMs = next;
  }
  return found;
}

describe("nextSlot", () => {
  test("a time of the day that the clocks leave out comes once, at the first moment after the gap", () => {
    const berlin = { after: "2026-03-28T00:00:00Z", count: 3 };
    expect(slots("30 2 * * *", "Europe/Berlin", berlin)).toEqual(["03-28 01:30", "03-29 01:00", "03-30 00:30"]);
    const newYork = { after: "2026-03-07T00:00:00Z", count: 3 };
    expect(slots("30 2 * * *", "America/New_York", newYork)).toEqual(["03-07 07:30", "03-08 07:00", "03-09 06:30"]);
    // Half an hour: at 2:00 the clocks show 2:30.
    const lordHowe = { after: "2026-10-02T20:00:00Z", count: 3 };
    expect(slots("15 2 * * *", "Australia/Lord_Howe", lordHowe)).toEqual(["10-03 15:30", "10-04 15:15", "10-05 15:15"]);
  });

  test.each(["0,30 2 * * *", "*/15 2 * * *", "0-50/10 2 * * *", "* 2 * * *"])(
    "several times in a gap (%s) come together, once",
    (cron) => {
      const [first, second] = slots(cron, "Europe/Berlin", { after: "2026-03-28T03:00:00Z", count: 2 });
      expect([first, second]).toEqual(["03-29 01:00", "03-30 00:00"]);
    },
  );

  test("a time of the day that the clocks show twice comes once, the first time", () => {
    const berlin = { after: "2026-10-24T03:00:00Z", count: 2 };
    expect(slots("30 2 * * *", "Europe/Berlin", berlin)).toEqual(["10-25 00:30", "10-26 01:30"]);
    expect(slots("*/30 2 * * *", "Europe/Berlin", { ...berlin, count: 3 })).toEqual([
      "10-25 00:00",
      "10-25 00:30",
      "10-26 01:00",
    ]);
    const newYork = { after: "2026-10-31T06:00:00Z", count: 2 };
    expect(slots("30 1 * * *", "America/New_York", newYork)).toEqual(["11-01 05:30", "11-02 06:30"]);
    const lordHowe = { after: "2026-04-03T20:00:00Z", count: 2 };
    expect(slots("45 1 * * *", "Australia/Lord_Howe", lordHowe)).toEqual(["04-04 14:45", "04-05 15:15"]);
  });

  test("with every hour, each hour that passes counts, also where the clocks change", () => {
    const autumn = { after: "2026-10-24T22:30:00Z", count: 4 };
    expect(slots("0 * * * *", "Europe/Berlin", autumn)).toEqual([
      "10-24 23:00",
      "10-25 00:00",
      "10-25 01:00",
      "10-25 02:00",
    ]);
    expect(slots("@hourly", "Europe/Berlin", { after: "2026-03-28T23:30:00Z", count: 3 })).toEqual([
      "03-29 00:00",
      "03-29 01:00",
      "03-29 02:00",
    ]);
  });

  test("every other hour means hours of the day", () => {
    const autumn = { after: "2026-10-24T21:00:00Z", count: 3 };
    for (const cron of ["0 */2 * * *", "0 0-23/2 * * *"])
      expect(slots(cron, "Europe/Berlin", autumn)).toEqual(["10-24 22:00", "10-25 00:00", "10-25 03:00"]);
  });

  test("reads a pattern as the clocks of its zone show it", () => {
    const monday = { after: "2026-03-07T00:00:00Z", count: 2 };
    expect(slots("30 9 * * MON-FRI", "Asia/Kolkata", monday)).toEqual(["03-09 04:00", "03-10 04:00"]);
    expect(slots("0 0 29 2 *", "UTC", { after: "2026-03-07T00:00:00Z", count: 1 })).toEqual(["02-29 00:00"]);
  });
});

describe("patternMistake", () => {
  test.each(["30 9 * * MON-FRI", "*/5 * * * *", "@daily", "0 0 29 2 *", "0 9 L * *", "0 9-17/4 * * 1,3"])(
    "takes %s",
    (cron) => expect(patternMistake({ cron, zone: "Europe/Berlin" })).toBeNull(),
  );

  test.each([
    ["61 * * * *", "Invalid value for minute"],
    ["* * *", "must have five fields"],
    ["* * * * * *", "must have five fields"],
    ["2026-12-01T00:00:00", "must have five fields"],
    ["@reboot", "must have five fields"],
    ["*/0 9 * * *", "stepping"],
    ["9-5/2 9 * * *", "From value is larger"],
    ["x 9 * * *", "illegal characters"],
    ["0 0 31 2 *", "never comes"],
  ])("says what is wrong with %s", (cron, message) => {
    expect(patternMistake({ cron, zone: "UTC" })).toMatchObject({
      field: "cron",
      message: expect.stringContaining(message),
    });
  });

  test.each(["Europe/Berln", "+02:00", "", "Mars/Base"])("does not know the zone %j", (zone) => {
    expect(patternMistake({ cron: "0 9 * * *", zone })).toMatchObject({
      field: "zone",
      message: expect.stringContaining("use a name like Europe/Berlin"),
    });
  });
});
