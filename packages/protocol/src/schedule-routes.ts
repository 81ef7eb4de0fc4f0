import { z } from "zod";
import { pageOf, pageQuery } from "./page.ts";
import type { Route } from "./route.ts";
import { Run } from "./run.ts";
import { NewSchedule, Schedule, ScheduleChange, ScheduleChangeBody, ScheduleName, Slot } from "./schedule.ts";

const ofSchedule = z.strictObject({ name: ScheduleName });

/** What starts runs by itself. */
export const SCHEDULE_ROUTES = {
  listSchedules: {
    method: "GET",
    path: "/schedules",
    summary: "Schedules, by name",
    access: "operator",
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Schedule),
  },
  createSchedule: {
    method: "POST",
    path: "/schedules",
    summary: "Start runs by a pattern in a time zone, or once; they are asked for in your name",
    access: "operator",
    body: NewSchedule,
    status: 201,
    reply: Schedule,
  },
  showSchedule: {
    method: "GET",
    path: "/schedules/:name",
    summary: "Show a schedule",
    access: "operator",
    params: ofSchedule,
    status: 200,
    reply: Schedule,
  },
  listSlots: {
    method: "GET",
    path: "/schedules/:name/slots",
    summary: "What became of each slot and why, the latest first",
    access: "operator",
    params: ofSchedule,
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(Slot),
  },
  listScheduleChanges: {
    method: "GET",
    path: "/schedules/:name/changes",
    summary: "Who did what to a schedule, the latest first",
    access: "operator",
    params: ofSchedule,
    query: z.strictObject(pageQuery),
    status: 200,
    reply: pageOf(ScheduleChange),
  },
  changeSchedule: {
    method: "POST",
    path: "/schedules/:name/change",
    summary: "Change what a schedule does, for the runs it has yet to start",
    access: "operator",
    params: ofSchedule,
    body: ScheduleChangeBody,
    status: 200,
    reply: Schedule,
  },
  pauseSchedule: {
    method: "POST",
    path: "/schedules/:name/pause",
    summary: "Start nothing more until it is resumed; a slot that waits is skipped",
    access: "operator",
    params: ofSchedule,
    status: 200,
    reply: Schedule,
  },
  resumeSchedule: {
    method: "POST",
    path: "/schedules/:name/resume",
    summary: "Go on with the next slot; those of the pause are not made up",
    access: "operator",
    params: ofSchedule,
    status: 200,
    reply: Schedule,
  },
  startSchedule: {
    method: "POST",
    path: "/schedules/:name/run",
    summary: "Start a run of a schedule at once, whatever its other runs do; it is marked as manual",
    access: "operator",
    params: ofSchedule,
    idempotent: true,
    status: 201,
    reply: Run,
  },
  deleteSchedule: {
    method: "POST",
    path: "/schedules/:name/delete",
    summary: "End a schedule; runs that it has started go on",
    access: "operator",
    params: ofSchedule,
    status: 200,
    reply: Schedule,
  },
} as const satisfies Readonly<Record<string, Route>>;
