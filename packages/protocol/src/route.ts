import { z } from "zod";

/**
 * Who may call a route at all. What a caller may do with a run is judged by the run's state and the caller's part in it
 * (the run's `actions`); what it may not see is not found.
 */
export const ACCESS = {
  anyone: "no token needed",
  caller: "any caller",
  submitter: "requesters and operators",
  operator: "operators",
  task_runner: "task runners and operators",
  executor: "task runners, operators, and whoever has the task's token",
  task: "whoever has the task's token",
} as const;
export type Access = keyof typeof ACCESS;

/** One entry of the route table. A schema that is left out takes nothing. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: `/${string}`;
  readonly summary: string;
  readonly access: Access;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject | z.ZodDiscriminatedUnion<z.ZodObject[]>;
  /** Takes the header `Idempotency-Key`: the same request again under the same key makes nothing new. */
  readonly idempotent?: true;
  readonly status: 200 | 201;
  readonly reply: z.ZodType;
}

/** The names at the top of what a schema takes, in any of its forms. */
export function namesOf(schema: Route["body"]): readonly string[] {
  if (schema === undefined) return [];
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return Object.keys(schema.shape);
  return [...new Set(schema.options.flatMap(({ shape }) => Object.keys(shape)))];
}
