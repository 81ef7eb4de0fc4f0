import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const at = (path: string) => new URL(`../../../${path}`, import.meta.url);
const read = (path: string) => readFileSync(at(path), "utf8");

interface Row {
  readonly behaviour: string;
  /** The test files that are named for it, each with its folder. */
  readonly files: readonly string[];
}

/** The rows of the tables of a text: what is said to hold, and what is said to hold it. */
function rowsOf(text: string): readonly Row[] {
  return [...text.matchAll(/^\| (.+) \| (.+) \|$/gm)]
    .map(([, behaviour = "", heldBy = ""]) => ({ behaviour: behaviour.trim(), files: filesOf(heldBy) }))
    .filter(({ behaviour, files }) => files.length > 0 || !isHeading(behaviour));
}

function isHeading(cell: string): boolean {
  return /^-+$/.test(cell) || ["behaviour", "what", "invariant"].includes(cell);
}

/** A file that stands behind another without a folder is in the same one. */
function filesOf(cell: string): readonly string[] {
  let folder = "";
  return [...cell.matchAll(/`([\w./-]+\.test\.ts)`/g)].map(([, named = ""]) => {
    if (!named.includes("/")) return `${folder}/${named}`;
    folder = named.slice(0, named.lastIndexOf("/"));
    return named;
  });
}

/** Documents leave out which of the workspace's folders a package is in. */
function isThere(file: string): boolean {
  return ["packages/", "apps/", ""].some((room) => existsSync(at(`${room}${file}`)));
}

function missingIn(rows: readonly Row[]): readonly string[] {
  return rows.flatMap(({ behaviour, files }) =>
    files.filter((file) => !isThere(file)).map((file) => `${behaviour}: ${file}`),
  );
}

describe("what is said to be held by tests", () => {
  test("in the list of behaviours: each has a test, and every file is there", () => {
    const rows = rowsOf(read("apps/docs/invariants.md"));
    expect(rows.length).toBeGreaterThan(60);
    expect(rows.filter(({ files }) => files.length === 0)).toEqual([]);
    expect(missingIn(rows)).toEqual([]);
  });

  test("in the table of invariants: every file is there", () => {
    const [, table = ""] = /^## Invariants[^\n]*\n([\s\S]*?)^## /m.exec(read("ARCHITECTURE.md")) ?? [];
    const rows = rowsOf(table);
    expect(rows.length).toBeGreaterThan(30);
    expect(missingIn(rows)).toEqual([]);
  });
});

test("a file that is not there, and a line without one, would be found", () => {
  const rows = rowsOf(
    "| behaviour | held by |\n| --- | --- |\n| good | `core/test/table.test.ts`, `no.test.ts` |\n| bare | nothing |\n",
  );
  expect(rows).toEqual([
    { behaviour: "good", files: ["core/test/table.test.ts", "core/test/no.test.ts"] },
    { behaviour: "bare", files: [] },
  ]);
  expect(missingIn(rows)).toEqual(["good: core/test/no.test.ts"]);
});
