import { approversAt, type PendingRequest, type RequestChange } from "@holdpoint/core";
import type { ApprovalChange } from "./move.ts";

/** What becomes of a request, as a transition writes it. Whoever is asked next starts with nobody's approval. */
export function writeChange({ terms }: Pick<PendingRequest, "terms">, change: RequestChange): ApprovalChange {
  const { id } = change;
  if (change.become !== "pending") return { id, state: change.become };
  const { become: state, deadlineMs } = change;
  if (!("level" in change)) return { id, state, extended: true, deadlineMs };
  return { id, state, level: change.level, approvers: approversAt(terms, change.level), given: 0, deadlineMs };
}
