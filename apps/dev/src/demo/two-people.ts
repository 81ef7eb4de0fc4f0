// A refund for which two people have to stand: their part of the story.

import type { Approval } from "@holdpoint/protocol";
import { askForRefund, pendingApproval } from "./ask.ts";
import { inWords, money } from "./in-words.ts";
import { refusalOf } from "./refusal.ts";
import type { LedgerRow } from "./sandbox-admin.ts";
import { LARGE_ORDER, type Stage } from "./stage.ts";

/** Two of finance approve a refund, each for themselves. @throws {Error} something is not as the story claims. */
export async function playTwoPeople(stage: Stage): Promise<void> {
  const { people, narrator, crew, signal } = stage;
  narrator.chapter("A larger order: two people have to approve");
  const { run, follower } = await askForRefund(stage, LARGE_ORDER, { briefly: true });
  const request = await pendingApproval(people.fay, run, stage);
  const { id: approvalId, argsHash, terms, approvers } = request;
  const decision = { approvalId, argsHash, decision: "approve" } as const;
  narrator.does("fay", `reads what will run: ${request.tool} with ${inWords(request.args)}`);
  const first = await people.fay.decideApproval(decision, { signal });
  await follower.catchUp();
  narrator.claim(
    `${first.approval.terms.given} of ${terms.quorum} from ${approvers.roles.join(", ")} have approved; the run still waits, and nothing was sent`,
    isHalfApproved(first.approval) && (await rowsOf(stage)).length === 0,
  );
  const mona = await refusalOf(people.mona.decideApproval(decision, { signal }), crew);
  narrator.does("mona", `a manager, but not of finance, approves, and is told: ${mona}`);
  const alice = await refusalOf(people.alice.decideApproval(decision, { signal }), crew);
  narrator.does("alice", `approves what she has asked for herself, and is told: ${alice}`);
  const after = await people.fred.showApproval({ approvalId }, { signal });
  narrator.claim(
    `that has changed nothing: still ${after.terms.given} of ${after.terms.quorum}`,
    isHalfApproved(after) && (await rowsOf(stage)).length === 0,
  );
  await people.fred.decideApproval(decision, { signal });
  const ended = await follower.untilRun("the run to end", ({ endedAt }) => endedAt !== null);
  narrator.quote(ended.sentence);
  const { decided, amount } = await people.fred.showApproval({ approvalId }, { signal });
  const approvedBy = decided.map(({ by }) => by);
  const [row, ...others] = await rowsOf(stage);
  if (row === undefined) throw new Error("two have approved, but the ledger has no refund");
  narrator.claim(
    `${approvedBy.join(" and ")} have approved; paid once: ${row.refund}, ${money(row.amount, row.currency)}`,
    approvedBy.join(" ") === "fay fred" && others.length === 0 && String(row.amount) === amount?.minor,
  );
}

function isHalfApproved({ state, terms }: Approval): boolean {
  return state === "pending" && terms.given === 1 && terms.quorum === 2;
}

async function rowsOf({ sandbox }: Stage): Promise<readonly LedgerRow[]> {
  const ledger = await sandbox.ledger();
  return ledger.filter(({ payment_intent }) => payment_intent === LARGE_ORDER.paymentIntent);
}
