import type { Problem } from "@holdpoint/protocol";
import { type DecideResult, decideApproval, type Store } from "@holdpoint/store";
import { type ApprovalFilter, type ApprovalView, findApproval, listApprovals, readId } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { seesAll } from "../parts.ts";
import { notFound, refused } from "../problem.ts";
import { pageRequest, runRefusal, runReply, showPage } from "../run-access.ts";
import type { Asked, Handlers } from "../serve.ts";
import { showApproval, shown } from "../show.ts";
import type { Caller } from "../tokens.ts";

/** Approval requests: what waits for whom, and the decision. */
export function approvalHandlers({
  store,
  wakeUps,
}: HandlerDeps): Pick<Handlers, "listApprovals" | "showApproval" | "decideApproval"> {
  return {
    async listApprovals({ caller, query }) {
      return { body: showPage(await listApprovals(store, filterOf(query, caller), pageRequest(query)), showApproval) };
    },
    async showApproval({ caller, params }) {
      return { body: showApproval(await visibleApproval(store, caller, params.approvalId)) };
    },
    async decideApproval({ caller, params, body }) {
      const { id, runId } = await visibleApproval(store, caller, params.approvalId);
      const result = await decideApproval(store, {
        approvalId: id,
        decision: body.decision,
        argsHash: body.argsHash,
        note: body.note ?? null,
        actor: { kind: "approver", id: caller.user },
        roles: caller.roles,
      });
      if (result.result === "refused") throw await refusal(store, id, result);
      if (result.result === "accepted") wakeUps.announce(result.run);
      const approval = await findApproval(store, id);
      if (approval === null || result.result === "not_found") throw notFound("approval request");
      const run = await runReply(store, caller, runId);
      return { body: { approval: showApproval(approval), run, repeated: result.result !== "accepted" } };
    },
  };
}

async function visibleApproval(store: Store, caller: Caller, approvalId: string): Promise<ApprovalView> {
  const id = readId("approval", approvalId);
  const approval = id === null ? null : await findApproval(store, id);
  if (approval === null || !sees(caller, approval)) throw notFound("approval request");
  return approval;
}

function sees(caller: Caller, { requester, users }: ApprovalView): boolean {
  return seesAll(caller) || requester === caller.user || users.includes(caller.user);
}

function filterOf({ state, runId, mine }: Asked<"listApprovals">["query"], caller: Caller): ApprovalFilter {
  const id = runId === undefined ? undefined : readId("run", runId);
  if (id === null) throw notFound("run");
  return {
    ...(state === undefined ? {} : { states: state }),
    ...(id === undefined ? {} : { runId: id }),
    ...(mine ? { decidableBy: caller } : {}),
    ...(seesAll(caller) ? {} : { visibleTo: caller.user }),
  };
}

/** A refused decision says what became of the request, or, if the request is as it was, what became of the run. */
async function refusal(store: Store, approvalId: string, result: Extract<DecideResult, { result: "refused" }>) {
  const approval = await findApproval(store, approvalId);
  const decided = approval === null ? undefined : decidedOf(approval);
  if (decided === undefined) return runRefusal(store, result);
  return refused({ rule: result.rule, event: result.event, runStatus: result.run.state.status, decided });
}

function decidedOf({ state, decidedBy, decidedAtMs, deadlineMs }: ApprovalView): Problem["decided"] {
  if (decidedBy !== null && decidedAtMs !== null) {
    const what = state === "spent" ? "approved" : state;
    return { by: `approver ${decidedBy}`, what, at: shown(decidedAtMs) };
  }
  return state === "expired" ? { by: "its deadline", what: "expired", at: shown(deadlineMs) } : undefined;
}
