// Postgres 18.4 ends the whole server (SIGSEGV) where one statement re-checks a row that has changed meanwhile and then prunes
// partitions by that row: what a commit that waited for its run, or a claim, would do with the histories. With one partition
// there is nothing to prune. Ranges may be attached once that is mended.

import { expect, test } from "vitest";
import { COMMIT, COMMIT_SKIPPING } from "../src/commit-statement.ts";
import type { Statement } from "../src/db.ts";
import { SKIPPING, WAITING } from "../src/transition-statement.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

test("each history has one partition", async () => {
  const rows = await bench.sql(
    `select h.relname as history, count(*)::int as partitions from pg_class h join pg_inherits i on i.inhparent = h.oid
     where h.relnamespace = 'holdpoint'::regnamespace and h.relkind = 'p' group by h.relname order by h.relname`,
  );
  expect(rows).toEqual(["attempts", "calls", "steps", "transitions"].map((history) => ({ history, partitions: 1 })));
});

const COMMIT_PARTS = [
  "start",
  "children",
  "settles",
  "calls",
  "replyCalls",
  "messages",
  "usedApproval",
  "readFacts",
  "artifacts",
] as const;
const TRANSITION_PARTS = [
  "facts",
  "messages",
  "steps",
  "resumes",
  "approvals",
  "requests",
  "closesApprovals",
  "decisions",
  "settles",
  "lookUps",
  "late",
  "toldChildren",
  "callbacks",
  "task",
  "artifacts",
] as const;

const WHOLE: readonly (readonly [string, Statement])[] = [
  ["commits that wait", COMMIT.with(new Set(COMMIT_PARTS)).statement],
  ["commits that pass over", COMMIT_SKIPPING.with(new Set(COMMIT_PARTS)).statement],
  ["moves that wait", WAITING.with(new Set(TRANSITION_PARTS)).statement],
  ["moves that pass over", SKIPPING.with(new Set(TRANSITION_PARTS)).statement],
];

test("a part comes with the one that it reads", () => {
  expect(SKIPPING.with(new Set(["requests"]))).toEqual(SKIPPING.with(new Set(["approvals", "requests"])));
});

test.each(WHOLE)("no plan of %s chooses between partitions while it runs", async (_, { text }) => {
  await bench.sql("set plan_cache_mode = force_generic_plan");
  await bench.sql(`prepare whole(uuid, jsonb) as ${text}`);
  const tenant = "00000000-0000-7000-8000-000000000000";
  const lines = await bench.sql(`explain (costs off) execute whole('${tenant}', '[]')`);
  await bench.sql("deallocate whole");
  const plan = lines.map((line) => line["QUERY PLAN"]).join("\n");
  expect(plan).toContain("Update on attempts_rest");
  // What is appended here are the results of the parts, never the partitions of a table.
  expect(plan).not.toMatch(
    /Append\s*\n\s*(Subplans Removed|->\s+(Index|Seq|Bitmap)[^\n]* on (attempts|calls|steps|transitions)_)/,
  );
});
