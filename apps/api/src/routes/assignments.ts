import type { Assignment } from "@holdpoint/protocol";
import { grantRoles, revokeRole } from "@holdpoint/store";
import { findAssignments } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { notFound } from "../problem.ts";
import { pageRequest, showPage } from "../run-access.ts";
import type { Handlers } from "../serve.ts";
import { showAssignment } from "../show.ts";

/** Who may approve what: the present assignments, and their changes. */
export function assignmentHandlers({
  store,
}: HandlerDeps): Pick<Handlers, "listAssignments" | "grantRole" | "revokeRole"> {
  async function reply(asked: {
    readonly user: string;
    readonly role: string;
  }): Promise<{ readonly body: Assignment }> {
    const { items } = await findAssignments(store, asked, { limit: 1, after: null });
    const [assignment] = items;
    if (assignment === undefined) throw notFound("assignment");
    return { body: showAssignment(assignment) };
  }

  return {
    async listAssignments({ query }) {
      const { user, role } = query;
      const filter = { ...(user === undefined ? {} : { user }), ...(role === undefined ? {} : { role }) };
      return { body: showPage(await findAssignments(store, filter, pageRequest(query)), showAssignment) };
    },
    async grantRole({ caller, body }) {
      await grantRoles(store, { grants: [body], by: caller.user });
      return reply(body);
    },
    async revokeRole({ caller, body }) {
      await revokeRole(store, { ...body, by: caller.user });
      return reply(body);
    },
  };
}
