import type { AddressInfo } from "node:net";
import { type Client, createClient, ProblemError } from "@holdpoint/client";
import type { ApprovalRule, PolicyRule } from "@holdpoint/core";
import { openPublisher, type Publisher } from "@holdpoint/queue";
import { hashArgs, openStore, registerAgent, type Store } from "@holdpoint/store";
import { createTestDatabase } from "@holdpoint/testkit";
import { pino } from "pino";
import { afterAll, beforeAll } from "vitest";
import { assignTokenRoles, buildApi } from "../src/index.ts";

export const AGENT = { name: "refunds", version: "1" };
export const TOOL = "send_refund";
export const ARGS = { amount: "30.00", order: "4411", iban: "NO93 8601 1117 947" };
export const HASH = hashArgs(TOOL, ARGS);

/** What a manager is asked for unless a test says otherwise. */
export const TERMS: Omit<ApprovalRule, "rule"> = {
  approvers: { roles: ["manager"], users: [] },
  quorum: 1,
  veto: true,
  fourEyes: true,
  decisions: ["approve", "approve_with_edits", "reject", "reject_and_abort", "respond", "skip", "escalate"],
  answerSchema: { type: "object", properties: { refunded: { type: "boolean" } }, required: ["refunded"] },
  deadlineMs: 60_000,
  onDeadline: "reject",
  remindAfterMs: [20_000],
  escalation: [],
  validForMs: 60_000,
};

const RULES: readonly PolicyRule[] = [
  {
    name: "too_much",
    tools: [TOOL],
    when: [{ argument: "amount", is: ">", value: "1000.00" }],
    action: "deny",
    message: "Refunds over 1000.00 are not made here.",
  },
  {
    name: "two_of_finance",
    tools: [TOOL],
    when: [{ argument: "amount", is: ">", value: "100.00" }],
    action: "ask",
    approval: { ...TERMS, approvers: { roles: ["finance"], users: [] }, quorum: 2 },
  },
  {
    name: "over_limit",
    tools: [TOOL],
    when: [{ argument: "amount", is: ">", value: "10.00" }],
    action: "ask",
    approval: TERMS,
  },
];

export const SEND_REFUND = {
  name: TOOL,
  description: "Sends a refund",
  effect: "effect",
  inputSchema: {
    type: "object",
    properties: {
      amount: { type: "string", pattern: "^[0-9]+\\.[0-9]{2}$" },
      order: { type: "string" },
      iban: { type: "string" },
    },
    required: ["amount", "order", "iban"],
    additionalProperties: false,
  },
  rules: RULES,
  presentation: { redact: ["iban"], amount: null, risk: { level: "high", reversible: false } },
} as const;

const TOKENS = [
  { token: "alice-token", user: "alice", roles: ["requester"] },
  { token: "alice-manager", user: "alice", roles: ["requester", "manager"] },
  { token: "bob-token", user: "bob", roles: ["requester"] },
  { token: "mona-token", user: "mona", roles: ["manager"] },
  { token: "max-token", user: "max", roles: ["manager"] },
  { token: "fay-token", user: "fay", roles: ["finance"] },
  { token: "finn-token", user: "finn", roles: ["finance"] },
  { token: "carl-token", user: "carl", roles: ["requester"] },
  { token: "olga-token", user: "olga", roles: ["operator"] },
  { token: "ci-token", user: "ci-bot", roles: ["task_runner"] },
  { token: "ci-token-2", user: "other-bot", roles: ["task_runner"] },
];

/** Bank signs with either: it is changing its secret. */
export const SECRETS = [
  { source: "bank", secret: "bank-secret-old-1" },
  { source: "bank", secret: "bank-secret-new-2" },
  { source: "post", secret: "post-secret-only-3" },
];

/** An api that listens, on a database and a queue of its own. */
export interface TestApi extends AsyncDisposable {
  readonly baseUrl: string;
  readonly store: Store;
  readonly logged: readonly string[];
  /** The client of whoever has this token. */
  as(token: string): Client;
}

export async function openTestApi(options: { publisher?: Publisher } = {}): Promise<TestApi> {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase());
  const store = stack.use(openStore({ url: database.url }));
  const publisher = options.publisher ?? openPublisher({ kind: "postgres", url: database.url });
  stack.defer(() => publisher[Symbol.asyncDispose]());
  const logged: string[] = [];
  const log = pino({ level: "info" }, { write: (line) => logged.push(line) });
  await assignTokenRoles(store, TOKENS);
  const app = await buildApi({ store, publisher, tokens: TOKENS, callbackSecrets: SECRETS, log });
  await app.listen({ host: "127.0.0.1", port: 0 });
  stack.defer(() => app.close());
  await registerAgent(store, { ...AGENT, tools: [SEND_REFUND] });
  // A server that listens on TCP has an address of this form.
  const baseUrl = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  return {
    baseUrl,
    store,
    logged,
    as: (token) => createClient({ baseUrl, token, timeoutMs: 10_000 }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** One api for all tests of a file. */
export function useTestApi(): TestApi {
  let opened: TestApi | null = null;
  const api = (): TestApi => {
    if (opened === null) throw new Error("the api opens with the first test");
    return opened;
  };
  const close = async (): Promise<void> => opened?.[Symbol.asyncDispose]();
  beforeAll(async () => {
    opened = await openTestApi();
  });
  afterAll(close);
  return {
    get baseUrl() {
      return api().baseUrl;
    },
    get store() {
      return api().store;
    },
    get logged() {
      return api().logged;
    },
    as: (token) => api().as(token),
    [Symbol.asyncDispose]: close,
  };
}

/** The problem that a call must have been answered with. */
export async function problemOf(call: Promise<unknown>): Promise<ProblemError> {
  const error = await call.then(
    () => new Error("the call was answered with success"),
    (reason: unknown) => reason,
  );
  if (error instanceof ProblemError) return error;
  throw error;
}
