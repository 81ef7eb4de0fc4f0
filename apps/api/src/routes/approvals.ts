import type { Approval, Problem } from "@holdpoint/protocol";
import { type ApprovalDecision, type DecideResult, decideApproval, type Store } from "@holdpoint/store";
import {
  type ApprovalFilter,
  type ApprovalView,
  findApproval,
  findApprovalHistory,
  listApprovals,
  readId,
} from "@holdpoint/store/read";
import { visibleApproval } from "../approval-access.ts";
import type { HandlerDeps } from "../deps.ts";
import { seesAll } from "../parts.ts";
import { ApiProblem, notFound, refused } from "../problem.ts";
import { pageRequest, runRefusal, runReply, showPage } from "../run-access.ts";
import type { Asked, Handlers } from "../serve.ts";
import { shown } from "../show.ts";
import { showApproval, showApprovalSummary } from "../show-approval.ts";
import type { Caller } from "../tokens.ts";

/** Approval requests: what waits for whom, and the decision. */
export function approvalHandlers({
  store,
  wakeUps,
}: HandlerDeps): Pick<Handlers, "listApprovals" | "showApproval" | "decideApproval"> {
  const whole = async (caller: Caller, view: ApprovalView): Promise<Approval> =>
    showApproval(caller, view, await findApprovalHistory(store, view));

  return {
    async listApprovals({ caller, query }) {
      const page = await listApprovals(store, filterOf(query, caller), pageRequest(query));
      return { body: showPage(page, (view) => showApprovalSummary(caller, view)) };
    },
    async showApproval({ caller, params }) {
      return { body: await whole(caller, await visibleApproval(store, caller, params.approvalId)) };
    },
    async decideApproval({ caller, params, body }) {
      const { id, runId } = await visibleApproval(store, caller, params.approvalId);
      const result = await decideApproval(store, decisionOf({ id, caller, body }));
      if (result.result === "refused") throw await refusal(store, { id, caller }, result);
      if (result.result === "invalid") throw invalid(result.problem);
      if (result.result === "accepted") wakeUps.announce(result.run);
      const approval = await findApproval(store, id);
      if (approval === null || result.result === "not_found") throw notFound("approval request");
      const run = await runReply(store, caller, runId);
      return { body: { approval: await whole(caller, approval), run, repeated: result.result !== "accepted" } };
    },
  };
}

type Body = Asked<"decideApproval">["body"];

function decisionOf({
  id,
  caller,
  body,
}: {
  readonly id: string;
  readonly caller: Caller;
  readonly body: Body;
}): ApprovalDecision {
  const { decision, argsHash, note = null } = body;
  return {
    approvalId: id,
    decision,
    argsHash,
    note,
    actor: { kind: "approver", id: caller.user },
    ...("args" in body ? { args: body.args } : {}),
    ...("answer" in body ? { answer: body.answer } : {}),
  };
}

/** What was decided does not fit the call; the problem begins with the part of the body that it is about. */
function invalid(problem: string): ApiProblem {
  const [, path = "", message = problem] = /^(args|answer): (.*)$/s.exec(problem) ?? [];
  return new ApiProblem(422, "invalid_decision", { detail: problem, mistakes: [{ path: `body.${path}`, message }] });
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

type Refused = Extract<DecideResult, { result: "refused" }>;

/** A refused decision says what became of the request, or how far it has come; if it was withdrawn, what became of the run. */
async function refusal(
  store: Store,
  { id, caller }: { readonly id: string; readonly caller: Caller },
  result: Refused,
): Promise<ApiProblem> {
  const approval = await findApproval(store, id);
  const decided = approval === null ? undefined : decidedOf(approval, { user: caller.user, rule: result.rule });
  const isPending = approval?.state === "pending";
  if (decided === undefined && !isPending) return runRefusal(store, result);
  const { rule, event, run } = result;
  const soFar = isPending ? soFarOf(approval) : undefined;
  return refused({ rule, event, runStatus: run.state.status, decided, soFar });
}

/** Who has approved, where others have to as well. */
function soFarOf({ terms, level, decided }: ApprovalView): string | undefined {
  const approved = decided.filter((each) => each.kind === "approve" && each.level === level);
  if (approved.length === 0) return undefined;
  const who = approved.map(({ by, atMs }) => `${by} at ${shown(atMs)}`).join(", ");
  return `${approved.length} of ${terms.quorum} have approved so far: ${who}`;
}

/** Who decided what, so that nothing else can be: the request's end, or this person's own word on it. */
function decidedOf(
  { state, level, decided, decidedBy, decidedAtMs, closedAtMs, deadlineMs }: ApprovalView,
  { user, rule }: { readonly user: string; readonly rule: Refused["rule"] },
): Problem["decided"] {
  if (decidedBy !== null && decidedAtMs !== null) {
    return { by: `approver ${decidedBy}`, what: IN_WORDS[state] ?? state, at: shown(decidedAtMs) };
  }
  if (state === "expired") return { by: "its deadline", what: "expired", at: shown(closedAtMs ?? deadlineMs) };
  const own = decided.findLast((each) => each.by === user && each.level === level);
  if (own === undefined || rule !== "already_decided") return undefined;
  return { by: `approver ${own.by}`, what: own.kind, at: shown(own.atMs) };
}

/** What somebody did, where the request's state says more or less than that. */
const IN_WORDS: Readonly<Record<string, string>> = { spent: "approved", superseded: "edited" };
