import type { Client } from "@holdpoint/client";
import type { Approval, Run } from "@holdpoint/protocol";
import { type Follower, followRun } from "./follow.ts";
import { AGENT, type Order, type Stage } from "./stage.ts";

/** A run that waits for its approval, and whoever follows it. */
export interface Asked {
  readonly run: Run;
  readonly follower: Follower;
}

/** Lets alice ask for a refund, and tells the story until it waits; `briefly` leaves out how it was worked on. */
export async function askForRefund(
  { people, crew, narrator, signal }: Stage,
  { id, email }: Order,
  { briefly }: { readonly briefly: boolean },
): Promise<Asked> {
  const goal = `Please refund order ${id}, it arrived broken. I am ${email}`;
  const session = await people.alice.createSession({}, { signal });
  const submitted = await people.alice.submitRun({ sessionId: session.id, agent: AGENT, goal }, { signal });
  narrator.does("alice", `writes: ${goal}`);
  const follower = followRun({ client: people.alice, runId: submitted.id, crew, narrator, signal, briefly });
  const run = await follower.untilRun("the run to wait for an approval", ({ status }) => status === "waiting_approval");
  narrator.quote(run.sentence);
  return { follower, run };
}

/** The request that a run waits for, as this person sees it, who has to be one of those who are asked. */
export async function pendingApproval(who: Client, run: Run, { signal }: Stage): Promise<Approval> {
  const { items } = await who.listApprovals({ runId: run.id, state: ["pending"], mine: true }, { signal });
  const [approval] = items;
  if (approval === undefined) throw new Error("whoever is asked sees no request to decide");
  return who.showApproval({ approvalId: approval.id }, { signal });
}
