import { z } from "zod";
import { ApproverRole, User } from "./names.ts";
import { Assignment, Finding, Service } from "./operations.ts";
import { flag, pageOf, pageQuery } from "./page.ts";
import { Denial, Denied, DenyBody, LiftBody, Rules, TestedCall, Verdict } from "./policy.ts";
import { Agent, Health, Readiness, Worker } from "./resources.ts";
import type { Route } from "./route.ts";

const assignment = z.strictObject({ user: User, role: ApproverRole });

/** What operators need beside single runs, and whether the api itself works. */
export const OPERATION_ROUTES = {
  listWorkers: {
    method: "GET",
    path: "/workers",
    summary: "Workers, the newest first",
    access: "operator",
    query: z.strictObject({ ...pageQuery, gone: flag.describe("Those that are gone as well") }),
    status: 200,
    reply: pageOf(Worker),
  },
  listAgents: {
    method: "GET",
    path: "/agents",
    summary: "Agents that runs can be submitted to",
    access: "caller",
    status: 200,
    reply: z.object({ items: z.array(Agent) }),
  },
  listServices: {
    method: "GET",
    path: "/services",
    summary: "Services that fail for everybody, and how many runs wait for each",
    access: "operator",
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Service),
  },
  listFindings: {
    method: "GET",
    path: "/findings",
    summary: "Evidence that came late and says otherwise than what was settled, the newest first",
    access: "operator",
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Finding),
  },
  listAssignments: {
    method: "GET",
    path: "/assignments",
    summary: "Who has which approver's role, or had it, by name",
    access: "operator",
    query: z.strictObject({ ...pageQuery, user: User.optional(), role: ApproverRole.optional() }),
    status: 200,
    reply: pageOf(Assignment),
  },
  grantRole: {
    method: "POST",
    path: "/assignments/grant",
    summary: "Give somebody an approver's role",
    access: "operator",
    body: assignment,
    status: 200,
    reply: Assignment,
  },
  revokeRole: {
    method: "POST",
    path: "/assignments/revoke",
    summary: "Take a role from somebody; what they approved in it and nobody has spent can't be spent any more",
    access: "operator",
    body: assignment,
    status: 200,
    reply: Assignment,
  },
  listRules: {
    method: "GET",
    path: "/rules",
    summary: "Every rule about tool calls that is in force",
    access: "operator",
    status: 200,
    reply: Rules,
  },
  testRules: {
    method: "POST",
    path: "/rules/test",
    summary: "What would become of a call, and by which rule; nothing is called",
    access: "operator",
    body: TestedCall,
    status: 200,
    reply: Verdict,
  },
  denyCalls: {
    method: "POST",
    path: "/rules/deny",
    summary: "Forbid calls from now on, also those that have been approved and not started",
    access: "operator",
    body: DenyBody,
    status: 200,
    reply: Denied,
  },
  liftDenial: {
    method: "POST",
    path: "/rules/lift",
    summary: "Take back what was forbidden",
    access: "operator",
    body: LiftBody,
    status: 200,
    reply: Denial,
  },
  showHealth: {
    method: "GET",
    path: "/health",
    summary: "Whether the process is up",
    access: "anyone",
    status: 200,
    reply: Health,
  },
  showReadiness: {
    method: "GET",
    path: "/ready",
    summary: "Whether a write goes to Postgres, and to the queue, and back",
    access: "anyone",
    status: 200,
    reply: Readiness,
  },
} as const satisfies Readonly<Record<string, Route>>;
