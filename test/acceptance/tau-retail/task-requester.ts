// Each task has a requester of its own, so that its tools know which task's copy of the store they work on.

const PREFIX = "task-";

/** The name under which a task's run is submitted. */
export function requesterOfTask(taskId: string): string {
  return `${PREFIX}${taskId}`;
}

/** @throws {Error} the run was not submitted for a task. */
export function taskOfRequester(requester: string): string {
  if (!requester.startsWith(PREFIX)) throw new Error(`the requester ${requester} stands for no task`);
  return requester.slice(PREFIX.length);
}
