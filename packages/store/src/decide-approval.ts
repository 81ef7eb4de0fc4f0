import type { Actor, RunState } from "@holdpoint/core";
import { type ActResult, type ActRule, act } from "./act.ts";
import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { type Run, type RunJson, runOf } from "./run.ts";

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
  const { approvalId, actor, argsHash, note } = decision;
  const request = await readRequest(store, approvalId);
  if (request === null) return { result: "not_found" };
  const asked = {
    runId: request.run.id,
    event: "FactArrived" as const,
    actor,
    read: () => readRequest(store, approvalId),
  };
  return act<RequestSeen, DecideResult>(store, asked, ({ run, row }) => {
    const repeated = row.decided_by === actor.id && STATES[decision.decision].includes(row.state);
    if (repeated) return { answer: { result: "repeated", run } };
    const rule = refusal(row, decision);
    if (rule !== null) return { refuse: rule };
    const state = decision.decision === "approve" ? "approved" : "rejected";
    return {
      run,
      events: [
        { type: "FactArrived", fact: "decision", completesHold: row.others_pending === 0 && awaitsApproval(run.state) },
      ],
      actor,
      reason: `${decision.decision} ${row.tool}`,
      notAfterMs: row.deadline.getTime(),
      writes: {
        approvals: [{ id: approvalId, state, decidedBy: actor.id, note }],
        decisions: [{ id: newId(), approvalId, decision: decision.decision, argsHash, note }],
      },
    };
  });
}

const STATES: Readonly<Record<"approve" | "reject", readonly string[]>> = {
  approve: ["approved", "spent"],
  reject: ["rejected"],
};

type RequestSeen = { readonly run: Run; readonly row: RequestRow };

type RequestRow = {
  run: RunJson;
  others_pending: number;
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

/** The request, its run and how many other requests of the run are pending, in one snapshot; the run's version pins all. */
async function readRequest(store: Store, approvalId: string): Promise<RequestSeen | null> {
  const [row] = await execute<RequestRow>(store, REQUEST, [store.tenantId, approvalId]);
  return row === undefined ? null : { run: runOf(row.run), row };
}

const REQUEST = statement(
  "approval_request",
  `select a.state, a.tool, a.args_hash, a.roles, a.users, a.excluded, a.deadline, a.decided_by, to_jsonb(r) as run,
     (select count(*)::int from holdpoint.approvals o
      where o.run_id = a.run_id and o.state = 'pending' and o.id <> a.id) as others_pending
   from holdpoint.approvals a join holdpoint.runs r on r.id = a.run_id
   where a.tenant_id = $1::uuid and a.id = $2::uuid`,
);
