import { describe, expect, test } from "vitest";
import { lineWidth } from "../src/line-width.ts";

describe("lineWidth", () => {
  test.each([
    [100, undefined, 100],
    [100, "300", 100],
    [40, undefined, 80],
    [250, undefined, 160],
    [undefined, "300", 120],
  ])("is that of a terminal of %s columns, whatever COLUMNS=%s says", (columns, COLUMNS, width) => {
    expect(lineWidth({ isTTY: true, columns }, { COLUMNS })).toBe(width);
  });

  test.each([
    [undefined, 120],
    ["", 120],
    ["0", 120],
    ["-90", 120],
    ["90.5", 120],
    ["wide", 120],
    ["81", 81],
    ["79", 80],
    ["400", 400],
    ["401", 400],
    ["99999999999", 120],
  ])("without a terminal follows COLUMNS=%s within bounds", (COLUMNS, width) => {
    expect(lineWidth({}, { COLUMNS })).toBe(width);
  });
});
