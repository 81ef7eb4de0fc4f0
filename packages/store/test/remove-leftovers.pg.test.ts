import { moveClock, untilWaiting } from "@holdpoint/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type Artifact,
  createSession,
  findLeftovers,
  findRetentionDue,
  findSession,
  type LoadedRun,
  removeLeftovers,
  removeRuns,
  requestCancel,
} from "../src/index.ts";
import { ALICE, aReply, aRun } from "./a-run.ts";
import { aClaimedRun, accepted, endBy, ended, took } from "./a-status.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();
const later = (days: number) => moveClock(bench.url, days * 86_400_000);
const NOTHING = { sessionIds: [], artifacts: [], tombstones: [] };

beforeEach(async () => {
  await bench.sql(
    "truncate holdpoint.runs, holdpoint.sessions, holdpoint.messages, holdpoint.tombstones, holdpoint.artifacts cascade",
  );
  const tables = "transitions, holdpoint.steps, holdpoint.calls, holdpoint.attempts, holdpoint.artifact_uses";
  await bench.sql(`truncate holdpoint.${tables} cascade`);
});
afterEach(() => later(0));

async function removeRunsDue(): Promise<void> {
  const { errors } = await removeRuns(bench.store, await findRetentionDue(bench.store, 100));
  expect(errors).toEqual([]);
}

/** Removes what is left over, which must be what was found before; afterwards nothing is. */
async function remove() {
  const found = await findLeftovers(bench.store, 100);
  expect(await removeLeftovers(bench.store, 100)).toEqual(found);
  expect(await findLeftovers(bench.store, 100)).toEqual(NOTHING);
  return found;
}

test("a session goes with its messages once its last run is gone, not before", async () => {
  const first = await ended(bench.store, "completed");
  const { sessionId } = first;
  await later(10);
  const second = await aRun(bench.store, { sessionId });
  await later(35);
  await removeRunsDue();
  expect(await remove()).toEqual(NOTHING);
  const messages = "select run_id from holdpoint.messages where session_id = $1 order by seq";
  expect(await bench.sql(messages, [sessionId])).toEqual([{ run_id: null }, { run_id: second.id }]);
  accepted(await requestCancel(bench.store, { runId: second.id, actor: ALICE, reason: null }));
  await later(66);
  await removeRunsDue();
  expect(await remove()).toEqual({ ...NOTHING, sessionIds: [sessionId] });
  expect(await findSession(bench.store, sessionId)).toBeNull();
  expect(await bench.sql(messages, [sessionId])).toEqual([]);
});

test("a session that is used again meanwhile stays", async () => {
  const { sessionId } = await ended(bench.store, "completed");
  await later(31);
  await removeRunsDue();
  await aRun(bench.store, { sessionId });
  expect(await remove()).toEqual(NOTHING);
  expect(await findSession(bench.store, sessionId)).not.toBeNull();
});

test("a session in which somebody is just about to submit stays, and the run is submitted", async () => {
  const { sessionId } = await ended(bench.store, "completed");
  await later(31);
  await removeRunsDue();
  await using submitter = await bench.lonely();
  await submitter.store.pool.query("begin");
  await aRun(submitter.store, { sessionId });
  expect(await removeLeftovers(bench.store, 100)).toEqual(NOTHING);
  await submitter.store.pool.query("commit");
  expect(await remove()).toEqual(NOTHING);
});

test("a session that nobody has used goes after the longest time that anything is kept", async () => {
  const { id } = await createSession(bench.store, "alice");
  await later(29);
  expect(await remove()).toEqual(NOTHING);
  await later(31);
  expect(await remove()).toEqual({ ...NOTHING, sessionIds: [id] });
});

const OUTPUT: Artifact = { sha256: "a".repeat(64), sizeBytes: 3, mediaType: "text/plain", content: "abc" };

/** A claimed run that has stored the artifact. */
async function storing(): Promise<LoadedRun> {
  return took(bench.store, await aClaimedRun(bench.store), { steps: [aReply([])], artifacts: [OUTPUT] });
}

test("an artifact that two runs share goes a day after the last of them", async () => {
  await endBy(bench.store, await storing());
  await later(10);
  await endBy(bench.store, await storing());
  await later(31);
  await removeRunsDue();
  await later(33);
  expect((await remove()).artifacts).toEqual([]);
  await later(41);
  await removeRunsDue();
  expect((await remove()).artifacts).toEqual([]);
  await later(43);
  expect((await remove()).artifacts).toEqual([OUTPUT.sha256]);
  expect(await bench.sql("select from holdpoint.artifacts")).toEqual([]);
});

test("an artifact that is stored anew while it goes is there afterwards, in either order", async () => {
  await endBy(bench.store, await storing());
  await later(31);
  await removeRunsDue();
  await later(33);
  const claimed = await aClaimedRun(bench.store);
  await using worker = await bench.lonely();
  await worker.store.pool.query("begin");
  await took(worker.store, claimed, { steps: [aReply([])], artifacts: [OUTPUT] });
  expect((await removeLeftovers(bench.store, 100)).artifacts).toEqual([]);
  await worker.store.pool.query("commit");
  expect((await removeLeftovers(bench.store, 100)).artifacts).toEqual([]);

  await endBy(bench.store, { ...claimed, run: { ...claimed.run, stepSeq: claimed.run.stepSeq + 1 } });
  await later(64);
  await removeRunsDue();
  await later(66);
  const next = await aClaimedRun(bench.store);
  await using remover = await bench.lonely();
  await remover.store.pool.query("begin");
  expect((await removeLeftovers(remover.store, 100)).artifacts).toEqual([OUTPUT.sha256]);
  const storedAnew = took(worker.store, next, { steps: [aReply([])], artifacts: [OUTPUT] });
  await untilWaiting(bench.admin, worker.pid);
  await remover.store.pool.query("commit");
  await storedAnew;
  expect(await bench.sql("select sha256, loose_since from holdpoint.artifacts")).toEqual([
    { sha256: OUTPUT.sha256, loose_since: null },
  ]);
});
