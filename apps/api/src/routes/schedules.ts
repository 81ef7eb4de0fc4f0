import { nextSlot, type Schedule } from "@holdpoint/protocol";
import {
  type ControlScheduleResult,
  changeSchedule,
  createSchedule,
  deleteSchedule,
  findSchedule,
  pauseSchedule,
  readClock,
  resumeSchedule,
  type ScheduleDefinition,
  type ScheduleSeen,
  type StartNowResult,
  type Store,
  type Schedule as StoredSchedule,
  startNow,
  type Timing,
} from "@holdpoint/store";
import { listScheduleChanges, listSchedules, listSlots } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { ApiProblem, notFound, refusedRule } from "../problem.ts";
import { pageRequest, showPage } from "../run-access.ts";
import type { Answer, Asked, Handlers } from "../serve.ts";
import { showSchedule, showScheduleChange, showSlot } from "../show-schedule.ts";
import { idempotency, submitReply, unknownAgent } from "./sessions.ts";

/** What starts runs by itself. */
export function scheduleHandlers(
  deps: HandlerDeps,
): Pick<
  Handlers,
  | "listSchedules"
  | "createSchedule"
  | "showSchedule"
  | "listSlots"
  | "listScheduleChanges"
  | "changeSchedule"
  | "pauseSchedule"
  | "resumeSchedule"
  | "startSchedule"
  | "deleteSchedule"
> {
  const { store } = deps;
  return {
    async listSchedules({ query }) {
      return { body: showPage(await listSchedules(store, pageRequest(query)), showSchedule) };
    },
    async createSchedule({ caller, body: { name, ...said } }) {
      const timing = timingOf(said);
      const nextSlotAtMs = timing === null ? null : firstSlot(timing, await readClock(store));
      // A pattern that the schema has taken comes again, and the schema takes nothing that says neither.
      if (timing === null || nextSlotAtMs === null) throw past();
      const definition = { agent: said.agent, goal: said.goal, timing, overlap: said.overlap, catchUp: said.catchUp };
      const created = await createSchedule(store, { name, definition, nextSlotAtMs, by: caller.user });
      if (created.result === "name_taken") throw refusedRule("schedule_exists");
      if (created.result === "agent_not_found") throw await unknownAgent(deps, said.agent);
      return { body: showSchedule(created.schedule) };
    },
    async showSchedule({ params }) {
      return { body: showSchedule(await known(store, params.name)) };
    },
    async listSlots({ params, query }) {
      const { id } = await known(store, params.name);
      return { body: showPage(await listSlots(store, id, pageRequest(query)), showSlot) };
    },
    async listScheduleChanges({ params, query }) {
      const { id } = await known(store, params.name);
      return { body: showPage(await listScheduleChanges(store, id, pageRequest(query)), showScheduleChange) };
    },
    changeSchedule: (asked) => change(deps, asked),
    async pauseSchedule({ caller, params }) {
      return { body: controlled(await pauseSchedule(store, { name: params.name, by: caller.user })) };
    },
    async resumeSchedule({ caller, params }) {
      const by = caller.user;
      const resumed = await resumeSchedule(store, { name: params.name, by, nextSlotAtMs: slotAfterPause });
      return { body: controlled(resumed) };
    },
    async startSchedule({ caller, params, idempotencyKey }) {
      const request = { schedule: params.name, run: "now" };
      const asked = { name: params.name, by: caller.user, ...idempotency(caller, idempotencyKey, request) };
      return startReply(deps, caller, await startNow(store, asked));
    },
    async deleteSchedule({ caller, params }) {
      return { body: controlled(await deleteSchedule(store, { name: params.name, by: caller.user })) };
    },
  };
}

async function change(deps: HandlerDeps, { caller, params, body }: Asked<"changeSchedule">) {
  const changed = await changeSchedule(deps.store, {
    name: params.name,
    by: caller.user,
    change: ({ schedule, nowMs }) => {
      const timing = timingOf(body);
      const definition = definitionOf(schedule, { ...body, timing: timing ?? schedule.timing });
      // The next slot stays where it was unless the timing is another one.
      if (timing === null) return { definition, nextSlotAtMs: schedule.nextSlotAtMs };
      const nextSlotAtMs = firstSlot(timing, nowMs);
      return nextSlotAtMs === null ? { refuse: past() } : { definition, nextSlotAtMs };
    },
  });
  switch (changed.result) {
    case "changed":
      return { body: showSchedule(changed.schedule) };
    case "refused":
      throw changed.refusal;
    case "agent_not_found":
      throw await unknownAgent(deps, body.agent ?? { name: "", version: "" });
    case "busy":
      throw refusedRule("busy");
    case "not_found":
      throw notFound("schedule");
  }
}

function definitionOf(
  before: StoredSchedule,
  { agent, goal, timing, overlap, catchUp }: Omit<Asked<"changeSchedule">["body"], "at"> & { readonly timing: Timing },
): ScheduleDefinition {
  return {
    agent: agent ?? before.agent,
    goal: goal ?? before.goal,
    timing,
    overlap: overlap ?? before.overlap,
    catchUp: catchUp ?? before.catchUp,
  };
}

async function known(store: Store, name: string): Promise<StoredSchedule> {
  const found = await findSchedule(store, name);
  if (found === null) throw notFound("schedule");
  return found.schedule;
}

/** When a body says that runs start; null where it says nothing of it. */
function timingOf({
  cron,
  zone,
  at,
}: {
  cron?: string | undefined;
  zone?: string | undefined;
  at?: string | undefined;
}) {
  if (cron !== undefined && zone !== undefined) return { cron, zone, onceAtMs: null };
  return at === undefined ? null : { cron: null, zone: null, onceAtMs: Date.parse(at) };
}

/** The first slot after now; null for an instant that has passed. */
function firstSlot(timing: Timing, nowMs: number): number | null {
  if (timing.cron !== null) return nextSlot(timing, nowMs);
  return timing.onceAtMs > nowMs ? timing.onceAtMs : null;
}

/** Slots of a pause are not made up: a schedule goes on with the next one. */
function slotAfterPause({ schedule, nowMs }: ScheduleSeen): number | null {
  const { timing, nextSlotAtMs } = schedule;
  // It had no slot left when it was paused.
  if (nextSlotAtMs === null) return null;
  const next = firstSlot(timing, nowMs);
  if (next === null) throw refusedRule("schedule_is_over");
  return next;
}

function past(): ApiProblem {
  const message = "has passed, by the database's clock: name a later instant";
  return new ApiProblem(400, "invalid_request", {
    detail: `body.at: ${message}`,
    mistakes: [{ path: "body.at", message }],
  });
}

function controlled(result: ControlScheduleResult): Schedule {
  if (result.result === "not_found") throw notFound("schedule");
  if (result.result === "busy") throw refusedRule("busy");
  return showSchedule(result.schedule);
}

async function startReply(
  deps: HandlerDeps,
  caller: Asked<"startSchedule">["caller"],
  result: StartNowResult,
): Promise<Answer<"startSchedule">> {
  switch (result.result) {
    case "started":
      return submitReply(deps, caller, { result: "submitted", run: result.run });
    case "repeated":
    case "removed":
    case "key_reused":
      return submitReply(deps, caller, result);
    case "too_many_live":
      throw refusedRule("too_many_live_runs");
    case "busy":
      throw refusedRule("busy");
    case "not_found":
      throw notFound("schedule");
  }
}
