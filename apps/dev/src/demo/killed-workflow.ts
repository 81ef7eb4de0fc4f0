// A workflow whose worker is killed at each of its nodes: its part of the story.

import type { Run, TimelineEntry } from "@holdpoint/protocol";
import { z } from "zod";
import { TOKEN } from "../development-tokens.ts";
import { pendingApproval } from "./ask.ts";
import { runCommand } from "./command-line.ts";
import { type Follower, followRun } from "./follow.ts";
import { money } from "./in-words.ts";
import { killHand, lastOwner } from "./kill.ts";
import { CASE_ORDER, type Stage, WORKFLOW } from "./stage.ts";
import { until } from "./until.ts";

const LIMIT_MS = 60_000;
const Result = z.object({ refund: z.object({ refund_id: z.string() }), letter: z.string(), signedOff: z.boolean() });

/** What has to be on record in the end: each node once, in each of its rounds. */
const NODES = [
  "intake starts",
  "policy is done",
  "refund starts",
  "letter starts",
  "quality is done",
  "letter starts",
  "quality is done",
  "sign-off starts",
];

/** A case goes through six nodes, and the worker dies at each. @throws {Error} something is not as the story claims. */
export async function playKilledWorkflow(stage: Stage): Promise<void> {
  const { people, narrator, crew, signal } = stage;
  narrator.chapter("A workflow of six nodes; its worker is killed at each of them");
  const { id: order_id, email } = CASE_ORDER;
  const message = "The blanket came torn.";
  const session = await people.alice.createSession({}, { signal });
  const submission = { agent: WORKFLOW, goal: `The case of order ${order_id}`, input: { order_id, email, message } };
  const run = await people.alice.submitRun({ sessionId: session.id, ...submission }, { signal });
  narrator.does("alice", `opens a case of the workflow ${WORKFLOW.name} for order ${order_id}: ${message}`);
  const follower = followRun({ client: people.alice, runId: run.id, crew, narrator, signal, briefly: true });
  await killAtWork(stage, run, "intake");
  await killAtGate(stage, run, { node: "policy", follower });
  await killAtRefund(stage, run);
  await killAtWork(stage, run, "letter");
  await killAtGate(stage, run, { node: "quality", follower });
  const waiting = await follower.untilRun("the sign-off", ({ status }) => status === "waiting_approval");
  await killHand(stage, await lastOwner(stage, run), "sign-off waits for a manager");
  await signOff(stage, waiting);
  const ended = await follower.untilRun("the case to be closed", ({ endedAt }) => endedAt !== null);
  narrator.quote(ended.sentence);
  await showThatEachRanOnce(stage, ended, await follower.catchUp());
}

/** Kills whoever works on the child run of a node. */
async function killAtWork(stage: Stage, run: Run, node: string): Promise<void> {
  const { people, crew, signal } = stage;
  const owner = await until(
    async () => {
      const { items } = await people.alice.listChildren({ runId: run.id }, { signal });
      return items.find(({ startedBy, status }) => startedBy?.tool === node && status === "running")?.owner ?? null;
    },
    { what: `somebody to work on ${node}`, limitMs: LIMIT_MS, signal },
  );
  await killHand(stage, await crew.find(owner.workerId), `${node} is under way`);
}

/** Kills whoever has judged a gate, as soon as that is stored. */
async function killAtGate(
  stage: Stage,
  run: Run,
  { node, follower }: { readonly node: string; readonly follower: Follower },
): Promise<void> {
  const isJudged = async () => (nodesIn(await follower.catchUp()).includes(`${node} is done`) ? true : null);
  await until(isJudged, { what: `${node} to judge`, limitMs: LIMIT_MS, signal: stage.signal });
  await killHand(stage, await lastOwner(stage, run), `${node} has judged`);
}

async function killAtRefund(stage: Stage, run: Run): Promise<void> {
  const { sandbox, signal } = stage;
  await sandbox.holdNextReply(CASE_ORDER.paymentIntent);
  const isHeld = async () =>
    (await sandbox.heldReplies()).some(({ payment_intent }) => payment_intent === CASE_ORDER.paymentIntent) || null;
  await until(isHeld, { what: "the money to have moved", limitMs: LIMIT_MS, signal });
  await killAtWork(stage, run, "refund");
}

async function signOff(stage: Stage, run: Run): Promise<void> {
  const { people, narrator, signal } = stage;
  const { id: approvalId, argsHash } = await pendingApproval(people.mona, run, stage);
  narrator.does("mona", "reads the letter, and signs the case off");
  await people.mona.decideApproval({ approvalId, argsHash, decision: "approve" }, { signal });
}

async function showThatEachRanOnce(stage: Stage, run: Run, timeline: readonly TimelineEntry[]): Promise<void> {
  const { people, narrator, sandbox, fleet, signal } = stage;
  const command = ["runs", "children", run.id];
  narrator.does("alice", `asks what ran for it: holdpoint ${command.join(" ")}`);
  narrator.plain(`\n${await runCommand(command, { apiUrl: fleet.apiUrl, token: TOKEN.alice, signal })}\n`);
  const nodes = nodesIn(timeline);
  narrator.claim(
    `each node was executed once in each round, in this order: ${nodes.map((line) => line.split(" ")[0]).join(", ")}`,
    nodes.join() === NODES.join(),
  );
  const { items: children } = await people.alice.listChildren({ runId: run.id }, { signal });
  const tries = children.map(({ startedBy }) => `${startedBy?.tool} ${startedBy?.try}`);
  narrator.claim(
    `${children.length} child runs did the work, none of them twice`,
    tries.join() === "intake 1,refund 1,letter 1,letter 1" && children.every(({ status }) => status === "completed"),
  );
  const rows = (await sandbox.ledger()).filter(({ payment_intent }) => payment_intent === CASE_ORDER.paymentIntent);
  const [row] = rows;
  if (row === undefined) throw new Error("the case is closed, but the ledger has no refund");
  narrator.claim(`paid once: ${row.refund}, ${money(row.amount, row.currency)}`, rows.length === 1);
  const { letter, signedOff, refund } = Result.parse(run.result);
  narrator.claim(
    "quality sent the first letter back, since it did not name the refund; the one that was signed off does",
    letter.includes(row.refund) && refund.refund_id === row.refund && signedOff,
  );
}

/** What the timeline says of nodes: `intake starts`, `policy is done`. */
export function nodesIn(timeline: readonly TimelineEntry[]): readonly string[] {
  return timeline.flatMap((entry) =>
    entry.kind === "step" && entry.step === "nodes_started" ? entry.line.replace(/^turn \d+: /, "").split(", ") : [],
  );
}
