import { z } from "zod";
import { Approval, ApprovalState, ApprovalSummary, Decided, DecisionBody } from "./approval.ts";
import { ApprovalId, RunId } from "./ids.ts";
import { flag, listOf, pageOf, pageQuery } from "./page.ts";
import type { Route } from "./route.ts";

const ofApproval = z.strictObject({ approvalId: ApprovalId });

/** Approval requests. */
export const APPROVAL_ROUTES = {
  listApprovals: {
    method: "GET",
    path: "/approvals",
    summary: "Approval requests, the newest first",
    access: "caller",
    query: z.strictObject({
      ...pageQuery,
      state: listOf(ApprovalState).optional(),
      runId: RunId.optional(),
      mine: flag.describe("Only what waits for this caller's decision"),
    }),
    status: 200,
    reply: pageOf(ApprovalSummary),
  },
  showApproval: {
    method: "GET",
    path: "/approvals/:approvalId",
    summary: "Show an approval request with all that whoever decides it needs",
    access: "caller",
    params: ofApproval,
    status: 200,
    reply: Approval,
  },
  decideApproval: {
    method: "POST",
    path: "/approvals/:approvalId/decision",
    summary: "Decide a request; the first decision counts, and the same one again is answered as the first was",
    access: "caller",
    params: ofApproval,
    body: DecisionBody,
    status: 200,
    reply: Decided,
  },
} as const satisfies Readonly<Record<string, Route>>;
