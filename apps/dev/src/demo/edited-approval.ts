// A refund of which a manager changes the amount: her part of the story.

import type { Approval } from "@holdpoint/protocol";
import { z } from "zod";
import { TOKEN } from "../development-tokens.ts";
import { askForRefund, pendingApproval } from "./ask.ts";
import { runCommand } from "./command-line.ts";
import { money } from "./in-words.ts";
import { EDITED_ORDER, type Stage } from "./stage.ts";

const FEE_MINOR = 2_000;
const Args = z.looseObject({ amount_minor: z.string(), currency: z.string() });

/** A manager keeps a fee back, and approves the rest. @throws {Error} something is not as the story claims. */
export async function playEditedApproval(stage: Stage): Promise<void> {
  const { people, narrator, fleet, signal } = stage;
  narrator.chapter("A manager changes the amount, and approves that");
  const { run, follower } = await askForRefund(stage, EDITED_ORDER, { briefly: true });
  const request = await pendingApproval(people.mona, run, stage);
  const command = ["approvals", "show", request.id];
  narrator.does("mona", `asks for what she needs to decide: holdpoint ${command.join(" ")}`);
  const shown = await runCommand(command, { apiUrl: fleet.apiUrl, token: TOKEN.mona, signal });
  narrator.plain(`\n${shown}\n`);
  const said = Args.parse(request.args);
  const changed = { ...said, amount_minor: String(Number(said.amount_minor) - FEE_MINOR) };
  const note = `${show(FEE_MINOR, said)} restocking fee`;
  narrator.does("mona", `puts ${inMoney(changed)} in the place of ${inMoney(said)} and approves that: ${note}`);
  const edit = { decision: "approve_with_edits", args: changed, argsHash: request.argsHash, note } as const;
  const { approval: before } = await people.mona.decideApproval({ approvalId: request.id, ...edit }, { signal });
  const ended = await follower.untilRun("the run to end", ({ endedAt }) => endedAt !== null);
  narrator.quote(ended.sentence);
  await showWhatRan(stage, { before, said, changed });
  const { items } = await people.alice.listMessages({ sessionId: run.sessionId, limit: 100 }, { signal });
  const told = items.at(-1);
  narrator.does("agent", `tells alice: ${told?.text ?? ""}`);
  narrator.claim("the customer is told what was really paid", told?.text.includes(inMoney(changed)) === true);
}

type Change = z.output<typeof Args>;

async function showWhatRan(
  { people, narrator, sandbox, signal }: Stage,
  { before, said, changed }: { readonly before: Approval; readonly said: Change; readonly changed: Change },
): Promise<void> {
  if (before.supersededBy === null) throw new Error("the edit has not put another request in the place of the first");
  const record = await people.mona.showApproval({ approvalId: before.supersededBy }, { signal });
  const [model, ran] = [Args.parse(record.modelArgs), Args.parse(record.args)];
  narrator.claim(
    `on record: the model said ${inMoney(model)}, ${record.editedBy} made ${inMoney(ran)} of it, and that ran`,
    model.amount_minor === said.amount_minor &&
      ran.amount_minor === changed.amount_minor &&
      record.editedBy === "mona" &&
      record.state === "spent",
  );
  const ledger = await sandbox.ledger();
  const [row, ...others] = ledger.filter(({ payment_intent }) => payment_intent === EDITED_ORDER.paymentIntent);
  if (row === undefined) throw new Error("the edit was approved, but the ledger has no refund");
  narrator.claim(
    `paid once, the amount that she approved: ${row.refund}, ${money(row.amount, row.currency)}`,
    others.length === 0 && String(row.amount) === changed.amount_minor,
  );
}

function inMoney(change: Change): string {
  return show(Number(change.amount_minor), change);
}

function show(minor: number, { currency }: Pick<Change, "currency">): string {
  return money(minor, currency);
}
