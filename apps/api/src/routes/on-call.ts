import type { Takeover, Worker } from "@holdpoint/protocol";
import {
  drainWorker,
  findOwnedBy,
  forecastLoss,
  type LossForecast,
  type Store,
  showId,
  takeOverRun,
} from "@holdpoint/store";
import {
  findEvidence,
  findFleetFacts,
  findServerFacts,
  findWorker,
  findWorkersOf,
  readId,
  type WorkerView,
} from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { type DoctorFacts, judgeDoctor, worstOf } from "../judge-doctor.ts";
import { notFound, refused, refusedRule } from "../problem.ts";
import { runRefusal, visibleRun } from "../run-access.ts";
import type { Asked, Handlers } from "../serve.ts";
import { showWorker } from "../show.ts";
import { showExplanation } from "../show-explanation.ts";
import { showForecast, showRestart } from "../show-loss.ts";

type Names = "explainRun" | "takeOverRun" | "showWorker" | "planRestart" | "drainWorker" | "showDoctor";

/** A worker has no more slots than this. */
const MOST_RUNS = 256;

/** What whoever is on call asks and does. */
export function onCallHandlers(deps: HandlerDeps): Pick<Handlers, Names> {
  const { store } = deps;
  return {
    async explainRun({ caller, params }) {
      const { run } = await visibleRun(store, caller, params.runId);
      const tree = await findEvidence(store, run.id);
      if (tree === null) throw notFound("run");
      return { body: showExplanation(tree) };
    },
    takeOverRun: async (asked) => ({ body: await takeOver(deps, asked) }),
    async showWorker({ params }) {
      return { body: await workerReply(store, params.workerId) };
    },
    async planRestart({ query }) {
      const workers = await workersNamed(store, query.worker);
      if (workers.length === 0) throw notFound("worker or host");
      const plans = [];
      for (const worker of workers) plans.push(showRestart(worker, await inFlight(store, worker)));
      return { body: { workers: plans } };
    },
    async drainWorker({ caller, params, body }) {
      const workerId = readId("worker", params.workerId);
      if (workerId === null) throw notFound("worker");
      const { result } = await drainWorker(store, { workerId, by: caller.user, stayDown: body.stayDown });
      if (result === "not_found") throw notFound("worker");
      if (result === "gone") throw refusedRule("worker_gone");
      return { body: await workerReply(store, params.workerId) };
    },
    async showDoctor() {
      const checks = judgeDoctor(await factsOf(deps));
      return { body: { worst: worstOf(checks), checks: [...checks] } };
    },
  };
}

async function takeOver(deps: HandlerDeps, { caller, params, body }: Asked<"takeOverRun">): Promise<Takeover> {
  const { store, wakeUps } = deps;
  const view = await visibleRun(store, caller, params.runId);
  const actor = { kind: "operator", id: caller.user } as const;
  const forecast = await forecastLoss(store, view.run.id, { reason: "taken_over", actor });
  if (forecast === null) throw notFound("run");
  const { owner, status } = forecast.run.state;
  const workerId = owner === null ? null : showId("worker", owner);
  const told = { applied: false, workerId, forecast: showForecast(forecast), status };
  if (!body.apply) {
    if (owner !== null) return told;
    throw refused({ rule: "nobody_owns_it", event: "OwnerGone", runStatus: status, decided: undefined });
  }
  // The schema gives a reason with every order to do it.
  const result = await takeOverRun(store, { runId: view.run.id, actor, reason: body.reason ?? "" });
  if (result.result === "not_found") throw notFound("run");
  if (result.result === "refused") throw await runRefusal(store, result);
  if (result.result === "accepted") wakeUps.announce(result.run);
  return { ...told, applied: result.result === "accepted", status: result.run.state.status };
}

async function workerReply(store: Store, shownId: string): Promise<Worker> {
  const id = readId("worker", shownId);
  const view = id === null ? null : await findWorker(store, id);
  if (view === null) throw notFound("worker");
  return showWorker(view);
}

/** A worker by its id, or all that live on a host. */
async function workersNamed(store: Store, name: string): Promise<readonly WorkerView[]> {
  const id = readId("worker", name);
  if (id === null) return findWorkersOf(store, name);
  const worker = await findWorker(store, id);
  return worker === null ? [] : [worker];
}

/** What becomes of each run of a worker whose process ends now. */
async function inFlight(store: Store, { id }: WorkerView): Promise<readonly LossForecast[]> {
  const owned = await findOwnedBy(store, id, MOST_RUNS);
  const how = { reason: "process_exited", actor: { kind: "supervisor", id: "forecast" } } as const;
  const forecasts: LossForecast[] = [];
  for (const { run } of owned) {
    const forecast = await forecastLoss(store, run.id, how);
    // It may have been given back since.
    if (forecast?.run.state.owner === id) forecasts.push(forecast);
  }
  return forecasts;
}

async function factsOf({ store, publisher }: HandlerDeps): Promise<DoctorFacts> {
  const sentMs = Date.now();
  const server = await findServerFacts(store);
  const apiMs = (sentMs + Date.now()) / 2;
  const isMigrated = server.migratedTo !== null && server.migratedTo >= server.newestMigration;
  const fleet = isMigrated ? await findFleetFacts(store) : null;
  const queued = (fleet?.agents ?? []).filter(({ queued: count }) => count > 0).slice(0, MOST_QUEUES);
  const [queueWorks, ...waiting] = await Promise.all([
    publisher.check(),
    ...queued.map(async (agent) => ({
      agent: `${agent.name}@${agent.version}`,
      waiting: await publisher.waiting(agent),
    })),
  ]);
  return { server, fleet, apiSkewMs: apiMs - server.clockMs, queueWorks, waiting };
}

/** Queues that are asked how long they are, at most. */
const MOST_QUEUES = 50;
