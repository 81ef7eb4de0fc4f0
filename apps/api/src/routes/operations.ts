import { setTimeout as pause } from "node:timers/promises";
import { listAgents } from "@holdpoint/store";
import { checkStore, findServices, listFindings, listWorkers } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { failureOf } from "../failure.ts";
import { ApiProblem } from "../problem.ts";
import { pageRequest, showPage } from "../run-access.ts";
import type { Handlers } from "../serve.ts";
import { showAgent, showFinding, showService, showWorker } from "../show.ts";

const READY_LIMIT_MS = 3_000;

/** Workers, services, what came late, agents, and whether the api itself works. */
export function operationHandlers({
  store,
  publisher,
  log,
}: HandlerDeps): Pick<
  Handlers,
  "listWorkers" | "listServices" | "listFindings" | "listAgents" | "showHealth" | "showReadiness"
> {
  return {
    async listWorkers({ query }) {
      return { body: showPage(await listWorkers(store, { gone: query.gone }, pageRequest(query)), showWorker) };
    },
    async listServices({ query }) {
      return { body: showPage(await findServices(store, pageRequest(query)), showService) };
    },
    async listFindings({ query }) {
      return { body: showPage(await listFindings(store, pageRequest(query)), showFinding) };
    },
    async listAgents() {
      return { body: { items: (await listAgents(store)).map(showAgent) } };
    },
    async showHealth() {
      return { body: { status: "up" } };
    },
    async showReadiness() {
      const [postgres, queue] = await Promise.all([withinLimit(checkStore(store)), publisher.check()]);
      if (postgres.result === "failed") {
        log.warn({ event: "readiness.failed", ...failureOf(postgres.error) }, "Postgres takes no writes");
        throw new ApiProblem(503, "unavailable", { detail: "Postgres did not take a write and give it back in time." });
      }
      if (postgres.result === "migration_missing") {
        throw new ApiProblem(503, "unavailable", { detail: "The schema is not migrated: run holdpoint migrate." });
      }
      // Without the queue everything is still accepted and kept; runs only start later, by the sweeper's repair.
      return { body: { status: queue ? "ready" : "degraded", postgres: "ok", queue: queue ? "ok" : "unavailable" } };
    },
  };
}

type Checked = { readonly result: "ok" | "migration_missing" } | { readonly result: "failed"; readonly error: unknown };

async function withinLimit(check: ReturnType<typeof checkStore>): Promise<Checked> {
  const over = new AbortController();
  const limit = pause(READY_LIMIT_MS, null, { signal: over.signal }).then(
    (): Checked => ({ result: "failed", error: new Error("no answer in time") }),
    (error): Checked => ({ result: "failed", error }),
  );
  const checked = check.then(
    (result): Checked => ({ result }),
    (error): Checked => ({ result: "failed", error }),
  );
  const first = await Promise.race([checked, limit]);
  over.abort();
  return first;
}
