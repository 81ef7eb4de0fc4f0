import type { Case } from "./scenario.ts";

export const MANAGER = "manager-mona";
/** With the manager, who is of finance as well, the second of the two whom large refunds need. */
export const FINANCE = "finance-fay";
export const OPERATOR = "operator-otto";

/** The api token of one of the test's people. */
export function tokenOf(user: string): string {
  return `token-of-${user}`;
}

/** HOLDPOINT_API_TOKENS for those who approve, the operator and everybody who submits. */
export function tokensFor(cases: readonly Case[]): string {
  const requesters = new Set(cases.map(({ requester }) => requester));
  const callers = [
    [MANAGER, "manager,finance"],
    [FINANCE, "finance"],
    [OPERATOR, "operator"],
    ...[...requesters].map((user) => [user, "requester"]),
  ];
  return callers.map(([user = "", role]) => `${tokenOf(user)}=${user}:${role}`).join(";");
}
