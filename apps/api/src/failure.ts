import { failureKind } from "@holdpoint/store";

/** What may be logged of an error: neither its text nor its stack's, since either may carry what somebody sent. */
export interface Failure {
  readonly error: string;
  readonly code: string | null;
  /** The first place in the product's own files; without it nobody could find a fault. */
  readonly at: string | null;
}

/** Describes an error for the log. */
export function failureOf(error: unknown): Failure {
  const root = rootOf(error);
  if (!(root instanceof Error)) return { error: typeof root, code: null, at: null };
  const at = /\/((?:apps|packages)\/[\w./-]+:\d+):\d+/.exec(root.stack?.split("\n    at ").slice(1).join("\n") ?? "");
  return { error: root.name, code: codeOf(root), at: at?.[1] ?? null };
}

/** Whether the database or the way to it is what failed, so that the same request may work later. */
export function isDatabaseAway(error: unknown): boolean {
  const root = rootOf(error);
  // The driver's own time-outs are plain errors without a code; a fault of the product has a class of its own.
  const mayBeDriver = root instanceof Error && (codeOf(root) !== null || root.constructor === Error);
  return mayBeDriver && ["connection", "resources", "repeat"].includes(failureKind(root));
}

/** The query builder wraps what the database said, and adds the statement with its values. */
function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}

function codeOf(error: Error): string | null {
  return "code" in error && typeof error.code === "string" ? error.code : null;
}
