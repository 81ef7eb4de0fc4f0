import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import { BUMPED } from "./policy-revision.ts";

/** Whose grants a configuration makes and takes back. */
const CONFIGURED = "configuration";

/**
 * Gives roles to people. One that was revoked is granted anew; one that a configuration had granted is from now on this
 * person's grant, and stays when the configuration names it no more.
 */
export async function grantRoles(
  store: Store,
  { grants, by }: { readonly grants: readonly { readonly user: string; readonly role: string }[]; readonly by: string },
): Promise<void> {
  await execute(store, GRANT, [store.tenantId, grants.map(({ user }) => user), grants.map(({ role }) => role), by]);
}

/**
 * Takes a role from somebody. What that person has approved in it can't be spent while they lack it.
 *
 * @returns whether the person had it.
 */
export async function revokeRole(
  store: Store,
  { user, role, by }: { readonly user: string; readonly role: string; readonly by: string },
): Promise<boolean> {
  return (await execute(store, REVOKE, [store.tenantId, user, role, by])).length > 0;
}

/**
 * Makes the assignments follow a configuration: what it names and nobody knows yet is granted, what only it had granted
 * and it does not name any more is revoked. What a person has revoked stays so.
 */
export async function syncRoles(
  store: Store,
  grants: readonly { readonly user: string; readonly role: string }[],
): Promise<void> {
  await execute(store, SYNC, [
    store.tenantId,
    grants.map(({ user }) => user),
    grants.map(({ role }) => role),
    CONFIGURED,
  ]);
}

/** The roles that somebody has now. */
export async function rolesOf(store: Store, user: string): Promise<readonly string[]> {
  const rows = await execute<{ role: string }>(store, ROLES, [store.tenantId, user]);
  return rows.map(({ role }) => role);
}

const GRANT = statement(
  "grant_roles",
  `with changed as (
     insert into holdpoint.role_assignments (tenant_id, user_id, role, granted_at, granted_by)
     select distinct $1::uuid, g.user_id, g.role, holdpoint.clock(), $4 from unnest($2::text[], $3::text[]) as g(user_id, role)
     on conflict (tenant_id, user_id, role) do update
       set granted_at = excluded.granted_at, granted_by = excluded.granted_by, revoked_at = null, revoked_by = null
       where role_assignments.revoked_at is not null or role_assignments.granted_by = '${CONFIGURED}'
     returning 1
   ), ${BUMPED}
   select 1 from changed`,
);

const REVOKE = statement(
  "revoke_role",
  `with changed as (
     update holdpoint.role_assignments g set revoked_at = holdpoint.clock(), revoked_by = $4
     where g.tenant_id = $1::uuid and g.user_id = $2 and g.role = $3 and g.revoked_at is null
     returning 1
   ), ${BUMPED}
   select 1 from changed`,
);

const SYNC = statement(
  "sync_roles",
  `with wanted as (
     select distinct w.user_id, w.role from unnest($2::text[], $3::text[]) as w(user_id, role)
   ), granted as (
     insert into holdpoint.role_assignments (tenant_id, user_id, role, granted_at, granted_by)
     select $1::uuid, w.user_id, w.role, holdpoint.clock(), $4 from wanted w
     on conflict (tenant_id, user_id, role) do update
       set granted_at = excluded.granted_at, granted_by = excluded.granted_by, revoked_at = null, revoked_by = null
       where role_assignments.revoked_by = $4
     returning 1
   ), revoked as (
     update holdpoint.role_assignments g set revoked_at = holdpoint.clock(), revoked_by = $4
     where g.tenant_id = $1::uuid and g.granted_by = $4 and g.revoked_at is null
       and not exists (select from wanted w where w.user_id = g.user_id and w.role = g.role)
     returning 1
   ), changed as (select from granted union all select from revoked), ${BUMPED}
   select 1 from changed`,
);

const ROLES = statement(
  "roles_of",
  `select role from holdpoint.role_assignments
   where tenant_id = $1::uuid and user_id = $2 and revoked_at is null order by role`,
);
