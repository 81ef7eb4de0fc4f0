import type { z } from "zod";
import { APPROVAL_ROUTES } from "./approval-routes.ts";
import { MEMORY_ROUTES } from "./memory.ts";
import { ON_CALL_ROUTES } from "./on-call-routes.ts";
import { OPERATION_ROUTES } from "./operation-routes.ts";
import type { Route } from "./route.ts";
import { RUN_ROUTES } from "./run-routes.ts";
import { SCHEDULE_ROUTES } from "./schedule-routes.ts";
import { TASK_ROUTES } from "./task-routes.ts";
import { UPKEEP_ROUTES } from "./upkeep-routes.ts";
import { WEBHOOK_ROUTES } from "./webhook-routes.ts";

/** Every route, by the name under which client and api know it. */
export const ROUTES = {
  ...RUN_ROUTES,
  ...APPROVAL_ROUTES,
  ...OPERATION_ROUTES,
  ...ON_CALL_ROUTES,
  ...SCHEDULE_ROUTES,
  ...MEMORY_ROUTES,
  ...UPKEEP_ROUTES,
  ...TASK_ROUTES,
  ...WEBHOOK_ROUTES,
} as const satisfies Readonly<Record<string, Route>>;

export type Routes = typeof ROUTES;
export type RouteName = keyof Routes;

/** The parsed value of one of a route's schemas; an empty object where it takes nothing. */
export type Parsed<Name extends RouteName, Part extends "params" | "query" | "body"> = Routes[Name] extends {
  readonly [Key in Part]: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : Readonly<Record<never, never>>;

/** What a route answers. */
export type Reply<Name extends RouteName> = z.output<Routes[Name]["reply"]>;
