import { z } from "zod";
import { RunId, WorkerId } from "./ids.ts";
import { CHECK_RESULTS, Check, Explanation, RestartPlan, Takeover } from "./on-call.ts";
import { Worker } from "./resources.ts";
import type { Route } from "./route.ts";

const ofRun = z.strictObject({ runId: RunId });
const ofWorker = z.strictObject({ workerId: WorkerId });

/** What whoever is on call asks and does. */
export const ON_CALL_ROUTES = {
  explainRun: {
    method: "GET",
    path: "/runs/:runId/explain",
    summary: "Why a run is not moving: the whole chain of evidence, and what would move it",
    access: "caller",
    params: ofRun,
    status: 200,
    reply: Explanation,
  },
  takeOverRun: {
    method: "POST",
    path: "/runs/:runId/takeover",
    summary:
      "Take a run from its worker, or see what that would do; what is open is looked up, never made again blindly",
    access: "operator",
    params: ofRun,
    body: z
      .strictObject({
        apply: z.boolean().default(false).describe("Do it; otherwise only say what it would do"),
        reason: z.string().trim().min(1).max(1_000).optional().describe("Why; it is recorded"),
      })
      .refine(({ apply, reason }) => !apply || reason !== undefined, {
        path: ["reason"],
        error: "says why; it is recorded",
      }),
    status: 200,
    reply: Takeover,
  },
  showWorker: {
    method: "GET",
    path: "/workers/:workerId",
    summary: "Show a worker",
    access: "operator",
    params: ofWorker,
    status: 200,
    reply: Worker,
  },
  planRestart: {
    method: "GET",
    path: "/restart-plan",
    summary: "What is in flight on a worker, or on all of a host, and what happens to each on a restart",
    access: "operator",
    query: z.strictObject({
      worker: z
        .string()
        .regex(/^[\x21-\x7e]{1,253}$/, { error: "must be the id of a worker, or the name of a host" })
        .describe("A worker's id, or the name of a host"),
    }),
    status: 200,
    reply: RestartPlan,
  },
  drainWorker: {
    method: "POST",
    path: "/workers/:workerId/drain",
    summary: "Ask a worker to give its runs back and end; another is started in its place unless it is to stay down",
    access: "operator",
    params: ofWorker,
    body: z.strictObject({
      stayDown: z.boolean().default(false).describe("Its supervisor starts no other in its place"),
    }),
    status: 200,
    reply: Worker,
  },
  showDoctor: {
    method: "GET",
    path: "/doctor",
    summary: "Whether the database, the queue, the clocks and the versions of the fleet are as they have to be",
    access: "operator",
    status: 200,
    reply: z.object({ worst: z.enum(CHECK_RESULTS), checks: z.array(Check) }),
  },
} as const satisfies Readonly<Record<string, Route>>;
