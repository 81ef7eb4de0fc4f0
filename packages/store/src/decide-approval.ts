import type { Actor, RunState } from "@holdpoint/core";
import { type ActResult, type ActRule, act } from "./act.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { newId } from "./ids.ts";
import type { Run } from "./run.ts";

export interface ApprovalDecision {
  readonly approvalId: string;
  readonly decision: "approve" | "reject";
  /** The hash of the arguments that the person was shown. */
  readonly argsHash: string;
  readonly note: string | null;
  readonly actor: Actor;
  /** The roles in which the person may act. */
  readonly roles: readonly string[];
}

/** The decision that stands, for whoever decides again. */
export interface StandingDecision {
  readonly state: string;
  readonly decidedBy: string | null;
  readonly decidedAtMs: number | null;
}

export type DecideResult =
  | ActResult
  /** The same person decided the same before: the first answer again. */
  | { readonly result: "repeated"; readonly run: Run };

/**
 * Decides an approval request. The first decision counts; a repeat of it by the same person is answered as the first
 * was, anything else is refused with who decided what (see `findApproval`). A decision after the deadline is refused
 * by the statement itself, whether the sweep has come by or not.
 */
export async function decideApproval(store: Store, decision: ApprovalDecision): Promise<DecideResult> {
  const { approvalId, actor } = decision;
  const runId = await runOfApproval(store, approvalId);
  if (runId === null) return { result: "not_found" };
  return act<DecideResult>(store, { runId, event: "FactArrived", actor }, async ({ run, approvals }) => {
    const request = await findRequest(store, approvalId);
    if (request === null) return { answer: { result: "not_found" } };
    const repeated = request.decided_by === actor.id && STATES[decision.decision].includes(request.state);
    if (repeated) return { answer: { result: "repeated", run } };
    const rule = refusal(request, decision);
    if (rule !== null) return { refuse: rule };
    const others = approvals.some(({ id, state }) => state === "pending" && id !== approvalId);
    const { note } = decision;
    const state = decision.decision === "approve" ? "approved" : "rejected";
    return {
      run,
      events: [{ type: "FactArrived", fact: "decision", completesHold: !others && awaitsApproval(run.state) }],
      actor,
      reason: `${decision.decision} ${request.tool}`,
      notAfterMs: request.deadline.getTime(),
      writes: {
        approvals: [{ id: approvalId, state, decidedBy: actor.id, note }],
        decisions: [{ id: newId(), approvalId, decision: decision.decision, argsHash: decision.argsHash, note }],
      },
    };
  });
}

const STATES: Readonly<Record<"approve" | "reject", readonly string[]>> = {
  approve: ["approved", "spent"],
  reject: ["rejected"],
};

type RequestRow = {
  state: string;
  tool: string;
  args_hash: string;
  roles: readonly string[];
  users: readonly string[];
  excluded: readonly string[];
  deadline: Date;
  decided_by: string | null;
};

function refusal(request: RequestRow, { actor, roles, argsHash }: ApprovalDecision): ActRule | null {
  const eligible = request.users.includes(actor.id) || request.roles.some((role) => roles.includes(role));
  if (request.excluded.includes(actor.id)) return "own_request";
  if (!eligible) return "not_an_approver";
  if (request.state === "expired") return "approval_expired";
  if (request.state === "withdrawn") return "approval_withdrawn";
  if (request.state !== "pending") return "already_decided";
  return request.args_hash === argsHash ? null : "hash_mismatch";
}

function awaitsApproval({ status, resumeTo }: RunState): boolean {
  if (status === "paused") return resumeTo?.to === "hold" && resumeTo.hold.kind === "approval";
  return status === "waiting_approval";
}

async function runOfApproval(store: Store, approvalId: string): Promise<string | null> {
  const [row] = await execute<{ run_id: string }>(store, RUN_OF, [store.tenantId, approvalId]);
  return row?.run_id ?? null;
}

async function findRequest(store: Store, approvalId: string): Promise<RequestRow | null> {
  const [row] = await execute<RequestRow>(store, REQUEST, [store.tenantId, approvalId]);
  return row ?? null;
}

const RUN_OF = statement(
  "run_of_approval",
  "select run_id from holdpoint.approvals where tenant_id = $1::uuid and id = $2::uuid",
);

const REQUEST = statement(
  "approval_request",
  `select state, tool, args_hash, roles, users, excluded, deadline, decided_by
   from holdpoint.approvals where tenant_id = $1::uuid and id = $2::uuid`,
);
