import { z } from "zod";
import type { Delay } from "./delays.ts";
import { type Answer, stripeError } from "./stripe-error.ts";

const MAX_RULES = 100;
const MAX_TIMES = 10_000;
const MAX_DELAY_MS = 60_000;
const MAX_RETRY_AFTER_S = 365 * 24 * 60 * 60;

const FaultMatch = z.strictObject({
  method: z.enum(["GET", "POST"]).optional(),
  path: z.string().startsWith("/v1/", "must be a whole path below /v1/, for example /v1/refunds").max(200).optional(),
  payment_intent: z
    .string()
    .regex(/^pi_\w{1,64}$/)
    .optional(),
});

const FaultAction = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("status"),
    status: z.int().min(400).max(599),
    /** The code of Stripe's error object. */
    code: z
      .string()
      .regex(/^[a-z_]{1,64}$/)
      .optional(),
    /** Left out: no Retry-After header. As a `date` it is counted from the sandbox's clock, which `Date` also shows. */
    retry_after: z
      .strictObject({
        seconds: z.int().min(0).max(MAX_RETRY_AFTER_S),
        as: z.enum(["seconds", "date"]).default("seconds"),
      })
      .optional(),
    /** The idempotency key keeps this reply and gives it again, as Stripe's keys do once a request was begun. */
    remembered: z.boolean().default(false),
  }),
  z.strictObject({ kind: z.literal("reset") }),
  z.strictObject({ kind: z.literal("half_reply") }),
  z.strictObject({ kind: z.literal("delay"), ms: z.int().min(1).max(MAX_DELAY_MS) }),
]);

const FaultRule = z
  .strictObject({
    /** All that is named must fit; nothing named fits every request of the payment endpoints. */
    match: FaultMatch.default({}),
    /** How many requests meet it; `null`: all until it is cleared. */
    times: z.int().min(1).max(MAX_TIMES).nullable(),
    /** Before the request has acted, or after that. */
    when: z.enum(["before", "after"]),
    do: FaultAction,
  })
  .superRefine(({ when, do: action }, context) => {
    const wrong = findContradiction(when, action);
    if (wrong !== null) context.addIssue({ code: "custom", path: wrong.path, message: wrong.message });
  });

/** The body of `POST /sandbox/faults`. */
export const FaultsBody = z.strictObject({ rules: z.array(FaultRule).min(1).max(MAX_RULES) });

/** A rule as `POST /sandbox/faults` takes it. */
export type FaultRule = z.input<typeof FaultRule>;
export type FaultAction = z.output<typeof FaultAction>;
export type StatusFault = Extract<FaultAction, { kind: "status" }>;

/** A rule that is armed; `left` is `null` when it has no end. */
export interface ArmedFault {
  readonly id: string;
  readonly match: z.output<typeof FaultMatch>;
  readonly left: number | null;
  readonly when: "before" | "after";
  readonly do: FaultAction;
}

/** What rules look at. */
export interface FaultSubject {
  readonly method: string;
  readonly path: string;
  readonly paymentIntent: string | null;
}

/** What one request meets at one point: first the delay, then the end. */
export interface PointFaults {
  readonly delay: Delay | null;
  readonly end: Exclude<FaultAction, { kind: "delay" }> | null;
}

export interface FaultPlan {
  readonly ids: readonly string[];
  readonly before: PointFaults;
  readonly after: PointFaults;
}

/** Nothing goes wrong. */
export const NO_FAULTS: FaultPlan = {
  ids: [],
  before: { delay: null, end: null },
  after: { delay: null, end: null },
};

/** The armed rules, in memory only: a sandbox that starts again has none. */
export interface Faults {
  /** Arms rules behind those that are there; `false`, and nothing changes, when they would be too many. */
  readonly add: (rules: z.output<typeof FaultsBody>["rules"]) => boolean;
  /**
   * Decides when a request arrives all that it will meet, and uses those rules up: at each point the first delay and
   * the first other fault that fit. A request that ends before it acts meets nothing after.
   */
  readonly take: (subject: FaultSubject) => FaultPlan;
  /** Removes one rule, or all with `null`; gives how many. */
  readonly clear: (id: string | null) => number;
  readonly list: () => readonly ArmedFault[];
}

export function createFaults(): Faults {
  let armed: readonly ArmedFault[] = [];
  let numbered = 0;
  return {
    add: (rules) => {
      if (armed.length + rules.length > MAX_RULES) return false;
      const added = rules.map(({ times, ...rule }) => {
        numbered += 1;
        return { id: `fault_${numbered}`, ...rule, left: times };
      });
      armed = [...armed, ...added];
      return true;
    },
    take: (subject) => {
      const fitting = armed.filter((rule) => fits(rule.match, subject));
      const before = chooseAt("before", fitting);
      const after = before.end === undefined ? chooseAt("after", fitting) : {};
      const taken = [before.delay, before.end, after.delay, after.end].filter((rule) => rule !== undefined);
      armed = armed.flatMap((rule) => (taken.includes(rule) ? useUp(rule) : rule));
      return { ids: taken.map(({ id }) => id), before: toPoint(before), after: toPoint(after) };
    },
    clear: (id) => {
      const before = armed.length;
      armed = id === null ? [] : armed.filter((rule) => rule.id !== id);
      return before - armed.length;
    },
    list: () => armed,
  };
}

/** The reply of a `status` fault, with Stripe's error object. */
export function faultAnswer(fault: StatusFault, nowMs: number): Answer & { headers: Readonly<Record<string, string>> } {
  const { status, retry_after: wait } = fault;
  const code = fault.code ?? (status === 429 ? "rate_limit" : undefined);
  const answer = stripeError(status, {
    type: errorType(status),
    message: `The sandbox was asked to answer with status ${status}.`,
    ...(code === undefined ? {} : { code }),
  });
  if (wait === undefined) return { ...answer, headers: {} };
  const until = new Date(nowMs + wait.seconds * 1_000).toUTCString();
  return { ...answer, headers: { "retry-after": wait.as === "date" ? until : String(wait.seconds) } };
}

interface Chosen {
  readonly delay?: ArmedFault | undefined;
  readonly end?: ArmedFault | undefined;
}

function chooseAt(when: ArmedFault["when"], fitting: readonly ArmedFault[]): Chosen {
  const here = fitting.filter((rule) => rule.when === when);
  return {
    delay: here.find((rule) => rule.do.kind === "delay"),
    end: here.find((rule) => rule.do.kind !== "delay"),
  };
}

function toPoint({ delay, end }: Chosen): PointFaults {
  return {
    delay: delay?.do.kind === "delay" ? { ruleId: delay.id, ms: delay.do.ms } : null,
    end: end === undefined || end.do.kind === "delay" ? null : end.do,
  };
}

function fits(match: ArmedFault["match"], { method, path, paymentIntent }: FaultSubject): boolean {
  return (
    (match.method === undefined || match.method === method) &&
    (match.path === undefined || match.path === path) &&
    (match.payment_intent === undefined || match.payment_intent === paymentIntent)
  );
}

function useUp(rule: ArmedFault): readonly ArmedFault[] {
  if (rule.left === null) return [rule];
  return rule.left === 1 ? [] : [{ ...rule, left: rule.left - 1 }];
}

function findContradiction(
  when: "before" | "after",
  action: FaultAction,
): { readonly path: string[]; readonly message: string } | null {
  if (action.kind === "half_reply" && when === "before") {
    return { path: ["when"], message: 'must be "after": before the effect there is no reply to send half of' };
  }
  if (action.kind !== "status" || action.status >= 500) return null;
  if (when === "after") {
    return { path: ["when"], message: 'must be "before": a status below 500 says that nothing happened' };
  }
  if (action.remembered) {
    return { path: ["do", "remembered"], message: "must be false: a key keeps only a status of 500 or more" };
  }
  return null;
}

function errorType(status: number): "api_error" | "card_error" | "invalid_request_error" {
  if (status >= 500) return "api_error";
  return status === 402 ? "card_error" : "invalid_request_error";
}
