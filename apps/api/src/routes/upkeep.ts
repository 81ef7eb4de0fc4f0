import { changeRetention, findRetention, findTombstones, type TombstoneKey } from "@holdpoint/store";
import { readId } from "@holdpoint/store/read";
import { applyMaintenance, auditFleet, planMaintenance } from "@holdpoint/upkeep";
import type { HandlerDeps } from "../deps.ts";
import { failureOf } from "../failure.ts";
import { notFound } from "../problem.ts";
import type { Asked, Handlers } from "../serve.ts";
import { showAuditFinding, showMaintenance, showTombstone } from "../show-upkeep.ts";

/** Most of each kind that one round of maintenance looks at. */
const LIMIT = 200;
/** Maintenance starts nothing more after this, so that its answer comes before the request is given up. */
const APPLY_LIMIT_MS = 20_000;
/** Wake-ups that are repeated within this time have the same ids, and the queue keeps one of each. */
const REPEAT_EVERY_MS = 10_000;
/** For sweeps that judge leases; a look from time to time judges none. */
const GRACE_MS = 5_000;

type Upkeep = "maintain" | "audit" | "findTombstones" | "showRetention" | "changeRetention";

/** Keeping the fleet in order: what is to be put right, what is wrong, and what was removed. */
export function upkeepHandlers({ store, publisher, log }: HandlerDeps): Pick<Handlers, Upkeep> {
  return {
    async maintain({ caller, body: { apply } }) {
      const number = Math.floor(Date.now() / REPEAT_EVERY_MS);
      const id = `maintenance by ${caller.user}`;
      const context = { store, publisher, id, graceMs: GRACE_MS, limit: LIMIT, number };
      if (!apply) return { body: showMaintenance(await planMaintenance(context)) };
      const done = await applyMaintenance(context, AbortSignal.timeout(APPLY_LIMIT_MS));
      for (const { kind, count, error } of done.applied?.failed ?? []) {
        log.error(
          { event: "maintenance.failed", sweep: kind, failed: count, ...failureOf(error) },
          "maintenance failed",
        );
      }
      const { actions, applied } = done;
      const counts = { found: actions.length, followed: applied?.followed, left: applied?.left.length };
      log.info({ event: "maintenance.applied", user: caller.user, ...counts }, "maintenance applied");
      return { body: showMaintenance(done) };
    },
    async audit() {
      return { body: { items: (await auditFleet({ store, publisher })).map(showAuditFinding) } };
    },
    async findTombstones({ query }) {
      return { body: { items: (await findTombstones(store, keyOf(query))).map(showTombstone) } };
    },
    async showRetention() {
      const retention = await findRetention(store);
      if (retention === null) throw notFound("retention: nothing is removed until it is set");
      return { body: retention };
    },
    async changeRetention({ caller, body }) {
      const days = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
      const retention = await changeRetention(store, { ...days, by: caller.user });
      log.info({ event: "retention.changed", user: caller.user, ...days }, "retention changed");
      return { body: retention };
    },
  };
}

function keyOf({ runId, operationId, externalRef }: Asked<"findTombstones">["query"]): TombstoneKey {
  if (operationId !== undefined) return { operationId };
  if (externalRef !== undefined) return { externalRef };
  const id = runId === undefined ? null : readId("run", runId);
  if (id === null) throw notFound("run");
  return { runId: id };
}
