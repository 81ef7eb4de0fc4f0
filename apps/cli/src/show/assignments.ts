import type { Assignment } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { renderTable } from "../table.ts";
import { localAndRelative } from "../times.ts";

/** Assignments as a table. */
export function showAssignments(assignments: readonly Assignment[], { out, now }: View): string {
  if (assignments.length === 0) return "no assignments\n";
  const columns = [
    { title: "USER", max: 30 },
    { title: "ROLE", max: 24 },
    { title: "STATE", max: null },
  ];
  const rows = assignments.map((assignment) => {
    const paint = assignment.revokedAt === null ? out.colours.good : out.colours.quiet;
    return [assignment.user, assignment.role, { text: stateOf(assignment, now), paint }];
  });
  return renderTable(columns, rows, out);
}

/** One assignment in one line. */
export function showAssignment(assignment: Assignment, { now }: View): string {
  return `${assignment.user} ${assignment.role}: ${stateOf(assignment, now)}\n`;
}

function stateOf({ grantedAt, grantedBy, revokedAt, revokedBy }: Assignment, now: Date): string {
  return revokedAt === null
    ? `granted by ${grantedBy}, ${localAndRelative(grantedAt, now)}`
    : `revoked by ${revokedBy ?? "nobody"}, ${localAndRelative(revokedAt, now)}`;
}
