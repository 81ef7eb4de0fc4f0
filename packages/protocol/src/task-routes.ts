import { z } from "zod";
import { RunId } from "./ids.ts";
import { listOf, pageOf, pageQuery } from "./page.ts";
import type { Route } from "./route.ts";
import { Status } from "./run.ts";
import {
  CompleteBody,
  FailBody,
  HeartbeatBody,
  HeartbeatReply,
  ReleaseBody,
  StartBody,
  StartedTask,
  Task,
  TaskDefinition,
  TaskEnd,
} from "./task.ts";

const ofTask = z.strictObject({ runId: RunId });
const name = z.string().min(1).max(200);

/** Work that is done elsewhere: a run whose executor speaks over the api, with a token of its own. */
export const TASK_ROUTES = {
  listTasks: {
    method: "GET",
    path: "/tasks",
    summary: "Tasks, the newest first",
    access: "task_runner",
    query: z.strictObject({
      ...pageQuery,
      agent: name.optional(),
      agentVersion: name.optional(),
      status: listOf(Status).optional(),
    }),
    status: 200,
    reply: pageOf(Task),
  },
  showTask: {
    method: "GET",
    path: "/tasks/:runId",
    summary: "Show a task, and who has it in hands",
    access: "caller",
    params: ofTask,
    status: 200,
    reply: Task,
  },
  defineTask: {
    method: "POST",
    path: "/tasks/definitions",
    summary: "Make a task known, or change what its executors are held to from their next start on",
    access: "operator",
    body: TaskDefinition,
    status: 200,
    reply: TaskDefinition,
  },
  startTask: {
    method: "POST",
    path: "/tasks/:runId/start",
    summary: "Take a task in hands: of those who want it, one gets it",
    access: "executor",
    params: ofTask,
    body: StartBody,
    idempotent: true,
    status: 201,
    reply: StartedTask,
  },
  issueTaskToken: {
    method: "POST",
    path: "/runs/:runId/task-token",
    summary:
      "A token for a task: for whoever has it in hands, or else for whoever is to start it. The one before is worth nothing any more",
    access: "operator",
    params: ofTask,
    status: 201,
    reply: z.object({
      token: z.string().describe("It is shown only here"),
      started: z.boolean().describe("Somebody has the task in hands and goes on with it; false: it starts the task"),
    }),
  },
  heartbeatTask: {
    method: "POST",
    path: "/tasks/:runId/heartbeat",
    summary: "A sign of life of whoever has the task in hands, with its progress; the answer says whether to stop",
    access: "task",
    params: ofTask,
    body: HeartbeatBody,
    status: 200,
    reply: HeartbeatReply,
  },
  completeTask: {
    method: "POST",
    path: "/tasks/:runId/complete",
    summary: "The task is done: what was achieved, and what it brings home; the same again gets the same answer",
    access: "task",
    params: ofTask,
    body: CompleteBody,
    status: 200,
    reply: TaskEnd,
  },
  failTask: {
    method: "POST",
    path: "/tasks/:runId/fail",
    summary: "The task has failed, or has stopped on request; the same again gets the same answer",
    access: "task",
    params: ofTask,
    body: FailBody,
    status: 200,
    reply: TaskEnd,
  },
  releaseTask: {
    method: "POST",
    path: "/tasks/:runId/release",
    summary: "Somebody else is to do it: the task waits to be started again",
    access: "task",
    params: ofTask,
    body: ReleaseBody,
    status: 200,
    reply: TaskEnd,
  },
} as const satisfies Readonly<Record<string, Route>>;
