import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { canonicalJson, type RetailState, sha256 } from "./retail-store.ts";

const REPOSITORY_ROOT = resolve(import.meta.dirname, "../../..");

const Tasks = z.array(
  z.object({
    id: z.string(),
    user_id: z.string(),
    instruction: z.string(),
    actions: z.array(
      z.object({ name: z.string(), arguments: z.record(z.string(), z.union([z.string(), z.array(z.string())])) }),
    ),
    outputs: z.array(z.string()),
  }),
);

const Expected = z.object({
  db_sha256: z.string(),
  totals: z.object({ tasks: z.number(), actions: z.number(), writes: z.number(), writes_ok: z.number() }),
  shared_db: z.object({ sha256: z.string(), task_ids: z.array(z.string()) }),
  tasks: z.record(
    z.string(),
    z.object({
      sha256: z.string(),
      actions: z.number(),
      writes: z.number(),
      writes_ok: z.number(),
      errors: z.array(z.object({ index: z.number(), code: z.string() })).default([]),
      results: z.array(z.string()),
    }),
  ),
});

/** One support case: what the customer wants, the ground-truth calls in order, what the answer should contain. */
export type RetailTask = z.infer<typeof Tasks>[number];

/** Expected end states, result hashes and counts of a set of tasks. */
export type RetailExpected = z.infer<typeof Expected>;
export type ExpectedTask = RetailExpected["tasks"][string];

/** "base": the 114 reviewed tasks. "v1": 520 more, writes only. */
export type TaskSet = "base" | "v1";

/** The data's folder: HOLDPOINT_RETAIL_DATA, or `../shared/data/tau-retail` beside the repository; null where absent. */
export function findRetailData(env: Readonly<Record<string, string | undefined>>): string | null {
  const configured = env.HOLDPOINT_RETAIL_DATA;
  const folder = configured ? resolve(configured) : resolve(REPOSITORY_ROOT, "../shared/data/tau-retail");
  if (existsSync(join(folder, "db.json"))) return folder;
  if (configured) throw new Error(`HOLDPOINT_RETAIL_DATA names ${folder}, which holds no db.json`);
  return null;
}

/**
 * The untouched store.
 *
 * @throws {Error} the file is not the one whose hash the expectations name.
 */
export async function loadRetailState(folder: string): Promise<RetailState> {
  const [state, expected] = await Promise.all([readJson(folder, "db.json"), loadExpected(folder, "base")]);
  const hash = sha256(canonicalJson(state));
  if (hash !== expected.db_sha256) {
    throw new Error(`db.json in ${folder} hashes to ${hash}, expected.json was made for ${expected.db_sha256}`);
  }
  return state as RetailState; // the hash says that it is exactly the documented data
}

export async function loadTasks(folder: string, set: TaskSet): Promise<readonly RetailTask[]> {
  return Tasks.parse(await readJson(folder, set === "base" ? "tasks.json" : "tasks_v1.json"));
}

export async function loadExpected(folder: string, set: TaskSet): Promise<RetailExpected> {
  return Expected.parse(await readJson(folder, set === "base" ? "expected.json" : "expected_v1.json"));
}

async function readJson(folder: string, file: string): Promise<unknown> {
  return JSON.parse(await readFile(join(folder, file), "utf8"));
}
