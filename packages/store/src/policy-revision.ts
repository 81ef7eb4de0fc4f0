/**
 * Ends a list of CTEs, one of which is named `changed`: where that has a row, the tenant's policy has another revision. On
 * the locked row of the tenant: the revisions are in the order of their commits.
 */
export const BUMPED = `
bumped as (
  update holdpoint.tenants t set policy_revision = t.policy_revision + 1
  where t.id = $1::uuid and exists (select from changed)
)`;
