import type { Problem } from "@holdpoint/protocol";

/** The server's answer was no success. `problem` has everything that it said. */
export class ProblemError extends Error {
  readonly code: Problem["code"];
  readonly status: number;
  readonly title: string;
  /** For a refusal: the rule that forbids what was asked. */
  readonly rule: string | null;
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail);
    this.name = "ProblemError";
    this.code = problem.code;
    this.status = problem.status;
    this.title = problem.title;
    this.rule = problem.rule ?? null;
    this.problem = problem;
  }
}

/**
 * There was no answer that this client understands. `unreachable` and `timeout`: whether the server took the request is
 * not known. `unexpected_reply`: something else than this api answered, or another version of it.
 */
export class NoReplyError extends Error {
  readonly code: "unreachable" | "timeout" | "unexpected_reply";
  constructor(code: NoReplyError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NoReplyError";
    this.code = code;
  }
}
