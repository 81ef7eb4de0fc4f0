import { NoReplyError, ProblemError } from "@holdpoint/client";

/** What a script may rely on. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unreachable: 4,
  warned: 5,
  stopAsked: 6,
} as const;

export const EXIT_CODES_HELP = `
Exit codes:
  0  done
  1  refused by the server, or failed
  2  wrong usage, or a setting is missing
  3  what was named (a run, a request, a rule …) is not there, or is not yours to see
  4  the server cannot be reached, or did not answer in time
  5  doctor found something to look at, and nothing that is wrong
  6  tasks heartbeat: the task is asked to stop, or to pause
`;

/** A command was used in a way that cannot work; the message says what to do. */
export class UsageError extends Error {
  readonly code = "USAGE";
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

/** What a failure means for a script. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof NoReplyError) return error.code === "unexpected_reply" ? EXIT.failed : EXIT.unreachable;
  if (!(error instanceof ProblemError)) return EXIT.failed;
  switch (error.code) {
    case "not_found":
      return EXIT.notFound;
    case "invalid_request":
    case "unauthenticated":
      return EXIT.usage;
    case "unavailable":
      return EXIT.unreachable;
    default:
      return EXIT.failed;
  }
}

/** What a person is told. */
export function explain(error: unknown): string {
  if (error instanceof ProblemError) {
    const hint =
      error.code === "unauthenticated" ? " It comes from HOLDPOINT_TOKEN, a task's from HOLDPOINT_TASK_TOKEN." : "";
    return `${error.title}: ${error.message}${hint}`;
  }
  if (error instanceof NoReplyError) return `${error.message} The address comes from HOLDPOINT_API_URL.`;
  return error instanceof Error ? error.message : String(error);
}
