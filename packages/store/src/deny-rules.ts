import type { DenyRule } from "@holdpoint/core";
import { type Store, statement } from "./db.ts";
import { constraintOf, execute } from "./execute.ts";
import { newId } from "./ids.ts";
import { BUMPED } from "./policy-revision.ts";

/** A rule that an operator has put in force. */
export interface StoredDenyRule {
  readonly rule: DenyRule;
  readonly reason: string;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/**
 * Forbids calls from now on: no intent whose statement begins after this starts what the rule is about, whatever has been
 * approved before.
 *
 * @returns false if a rule of this name is in force already.
 */
export async function denyCalls(
  store: Store,
  { rule, reason, by }: { readonly rule: DenyRule; readonly reason: string; readonly by: string },
): Promise<boolean> {
  try {
    await execute(store, DENY, [store.tenantId, newId(), rule.name, JSON.stringify(rule), reason, by]);
    return true;
  } catch (error) {
    if (constraintOf(error) === "deny_rules_in_force") return false;
    throw error;
  }
}

/**
 * Takes a rule back.
 *
 * @returns whether a rule of this name was in force.
 */
export async function liftDenial(
  store: Store,
  { name, by }: { readonly name: string; readonly by: string },
): Promise<boolean> {
  return (await execute(store, LIFT, [store.tenantId, name, by])).length > 0;
}

/** The rules in force, the oldest first. */
export async function listDenials(store: Store): Promise<readonly StoredDenyRule[]> {
  const rows = await execute<Omit<StoredDenyRule, "createdAtMs"> & { createdAt: Date }>(store, LIST, [store.tenantId]);
  return rows.map(({ createdAt, ...rule }) => ({ ...rule, createdAtMs: createdAt.getTime() }));
}

const DENY = statement(
  "deny_calls",
  `with changed as (
     insert into holdpoint.deny_rules (tenant_id, id, name, rule, reason, created_at, created_by)
     values ($1::uuid, $2::uuid, $3, $4::jsonb, $5, holdpoint.clock(), $6)
     returning 1
   ), ${BUMPED}
   select 1 from changed`,
);

const LIFT = statement(
  "lift_denial",
  `with changed as (
     update holdpoint.deny_rules set lifted_at = holdpoint.clock(), lifted_by = $3
     where tenant_id = $1::uuid and name = $2 and lifted_at is null
     returning 1
   ), ${BUMPED}
   select 1 from changed`,
);

const LIST = statement(
  "list_denials",
  `select rule, reason, created_by as "createdBy", created_at as "createdAt" from holdpoint.deny_rules
   where tenant_id = $1::uuid and lifted_at is null order by created_at, id`,
);
