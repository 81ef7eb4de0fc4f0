import { z } from "zod";
import { RunId } from "./ids.ts";
import type { Route } from "./route.ts";
import { AuditFinding, Maintenance, Retention, Tombstone } from "./upkeep.ts";

const Name = z.string().min(1).max(500);

/** Keeping a fleet in order over months. */
export const UPKEEP_ROUTES = {
  maintain: {
    method: "POST",
    path: "/maintenance",
    summary: "What is to be put right now, and with `apply` its being done; each action is judged anew as it is done",
    access: "operator",
    body: z.strictObject({ apply: z.boolean().describe("False: it is only looked") }),
    status: 200,
    reply: Maintenance,
  },
  audit: {
    method: "GET",
    path: "/audit",
    summary: "What is not as it should be, errors before warnings and the oldest first, each with what mends it",
    access: "operator",
    status: 200,
    reply: z.object({ items: z.array(AuditFinding) }),
  },
  findTombstones: {
    method: "GET",
    path: "/tombstones",
    summary: "What is left of runs that were removed, by their id or by an effect of theirs",
    access: "operator",
    query: z
      .strictObject({ runId: RunId.optional(), operationId: Name.optional(), externalRef: Name.optional() })
      .refine((key) => Object.values(key).filter((each) => each !== undefined).length === 1, {
        error: "must name one of runId, operationId, externalRef",
      }),
    status: 200,
    reply: z.object({ items: z.array(Tombstone) }),
  },
  showRetention: {
    method: "GET",
    path: "/retention",
    summary: "How long runs are kept after their end",
    access: "operator",
    status: 200,
    reply: Retention,
  },
  changeRetention: {
    method: "POST",
    path: "/retention",
    summary: "Change how long runs are kept after their end; what is left out stays",
    access: "operator",
    body: z.strictObject(Retention.partial().shape),
    status: 200,
    reply: Retention,
  },
} as const satisfies Readonly<Record<string, Route>>;
