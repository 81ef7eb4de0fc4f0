import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { coloursFor } from "../src/colours.ts";
import { oneLine, wrap } from "../src/safe-text.ts";
import { renderTable } from "../src/table.ts";

const COLUMNS = [
  { title: "ID", max: 10 },
  { title: "GOAL", max: null },
] as const;

const at = (width: number, colours = coloursFor(false)) => ({ write: () => undefined, colours, width });
const GOAL = "refund the order ".repeat(20).trim();

describe("renderTable", () => {
  test.each([80, 100, 120])("fits %i columns by shortening the open column", (width) => {
    const text = renderTable(COLUMNS, [["run_1", GOAL]], at(width));
    const lines = text.trimEnd().split("\n");
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
    expect(lines[1]).toContain("…");
  });

  test("goes on in the next line where a column wraps, and loses nothing", () => {
    const wrapping = [COLUMNS[0], { title: "GOAL", max: null, wraps: true }] as const;
    const lines = renderTable(wrapping, [["run_1", GOAL]], at(80))
      .trimEnd()
      .split("\n");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(
      lines
        .slice(1)
        .map((line) => line.slice(7))
        .join(" "),
    ).toBe(GOAL);
  });

  test("aligns columns under their titles", () => {
    const text = renderTable(
      COLUMNS,
      [
        ["run_1", "a"],
        ["run_22", "b"],
      ],
      at(80),
    );
    expect(text).toBe("ID      GOAL\nrun_1   a\nrun_22  b\n");
  });

  test("has no colour where there is none, and aligns the same where there is", () => {
    const painted = (enabled: boolean) => {
      const colours = coloursFor(enabled);
      return renderTable(COLUMNS, [[{ text: "run_1", paint: colours.bad }, "a"]], at(80, colours));
    };
    expect(painted(false)).not.toContain("\u001b");
    const seen = stripVTControlCharacters(painted(true)).split("\n");
    expect(seen.map((line) => line.trimEnd()).join("\n")).toBe(painted(false));
  });
});

describe("text of others", () => {
  test("cannot move the cursor or name the terminal", () => {
    expect(oneLine("a\u001b[2Jb\u0007\nc\u202ed")).toBe("a�[2Jb� c�d");
  });

  test("is broken at spaces, with further lines indented", () => {
    expect(wrap("one two three four five six", { width: 24, indent: 4 })).toBe("one two three four\n    five six");
  });
});
