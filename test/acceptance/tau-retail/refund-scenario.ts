// The same play on the refund product, for where the retail data is absent: refunds, each of which must be paid once.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Run } from "@holdpoint/protocol";
import { listSeedOrders, SEED_POLICY, type SeedOrder, setUpRefundDesk } from "@holdpoint/refund-desk";
import { z } from "zod";
import { startAndWait } from "./fleet/program.ts";
import { createRandomSource } from "./killer.ts";
import { runDifferences, type TaskFinding } from "./report.ts";
import type { CaseEvidence, Scenario, ScenarioOptions } from "./scenario.ts";

const SANDBOX = new URL("../../../apps/refund-desk/src/sandbox/main.ts", import.meta.url);
const AGENTS = new URL(import.meta.resolve("@holdpoint/refund-desk/worker-agents"));
const HELD_SHARE = 0.6;
const SET_UP_LIMIT_MS = 60_000;
const RELEASE_EVERY_MS = 250;

const Holds = z.object({ held: z.array(z.object({ idempotency_key: z.string().nullable() })) });
const Ledger = z.object({
  rows: z.array(z.object({ payment_intent: z.string(), amount: z.number() })),
  has_more: z.literal(false),
});

/** Refunds of the seed's orders, some of which a manager has to approve, on a payment sandbox of its own. */
export async function openRefundScenario({ seed, databaseUrl, logDir, env }: ScenarioOptions): Promise<Scenario> {
  const start = { name: "sandbox", main: SANDBOX, env, logFile: join(logDir, "sandbox.log") };
  const { program, line } = await startAndWait(start, "sandbox.listening");
  const sandboxUrl = `http://127.0.0.1:${z.object({ port: z.number() }).parse(line).port}`;
  const orders = listSeedOrders().filter(({ kind }) => kind === "above_limit" || kind === "below_limit");
  await setUpRefundDesk({ databaseUrl, sandboxUrl }, { now: new Date(), signal: AbortSignal.timeout(SET_UP_LIMIT_MS) });
  const random = createRandomSource(`${seed} holds`);
  for (const { paymentIntent } of orders.filter(() => random() < HELD_SHARE)) {
    await ask(sandboxUrl, "hold", { payment_intent: paymentIntent });
  }
  const closed = new AbortController();
  let releasing: Promise<void> | null = null;
  return {
    title: `${orders.length} refunds of the refund desk`,
    agent: { name: "refund-desk", version: "1" },
    agents: {
      module: AGENTS,
      env: { REFUND_DESK_DATABASE_URL: databaseUrl, REFUND_DESK_STRIPE_URL: sandboxUrl, REFUND_DESK_MODEL: "clerk" },
    },
    cases: orders.map(caseOf),
    approvals: orders.reduce((sum, order) => sum + approvalsOf(order), 0),
    plan: { kills: 14, killsAfterWrite: 6, minDelayMs: 600, maxDelayMs: 1_800, machineShare: 0.1 },
    minimums: { kills: 12, killsAfterWrite: 4, takeovers: 10 },
    heldReplies: async (runs) => findHeld(Holds.parse(await ask(sandboxUrl, "holds")).held, runs),
    letRepliesGo: async () => {
      // What is armed stays armed, so the replies that it holds back are let go again and again.
      releasing ??= releaseUntil(sandboxUrl, closed.signal);
    },
    judge: async (evidence) => {
      const { rows } = Ledger.parse(await ask(sandboxUrl, "ledger?limit=10000"));
      return orders.map((order) => judgeOrder(order, rows, evidence));
    },
    [Symbol.asyncDispose]: async () => {
      closed.abort();
      await releasing;
      await program.stop();
    },
  };
}

/** How many people have to approve its refund. */
function approvalsOf({ totalMinor }: SeedOrder): number {
  if (totalMinor > SEED_POLICY.twoPersonLimitMinor) return 2;
  return totalMinor > SEED_POLICY.managerLimitMinor ? 1 : 0;
}

function caseOf({ id, customer }: SeedOrder): Scenario["cases"][number] {
  return {
    name: id,
    requester: customer.id,
    goal: `Please refund order ${id}, it arrived broken. My address is ${customer.email}.`,
  };
}

/** The sandbox knows no processes; who waits for a reply is the owner of the run whose open effect it is. */
function findHeld(held: z.infer<typeof Holds>["held"], runs: readonly Run[]) {
  return held.flatMap(({ idempotency_key: operationId }) => {
    if (operationId === null) return [];
    const run = runs.find(({ externalRef }) => externalRef === operationId);
    return [{ operationId, workerPid: run?.owner?.pid ?? null }];
  });
}

function judgeOrder(
  { id, paymentIntent, totalMinor, refundedMinor }: SeedOrder,
  ledger: z.infer<typeof Ledger>["rows"],
  evidence: readonly CaseEvidence[],
): TaskFinding {
  const rows = ledger.filter(({ payment_intent }) => payment_intent === paymentIntent);
  const paidMinor = rows.reduce((sum, { amount }) => sum + amount, 0);
  const owedMinor = totalMinor - refundedMinor;
  const found = evidence.find(({ name }) => name === id);
  const differences = [
    ...(found === undefined ? ["it was never submitted"] : runDifferences(found.status, found.outcome)),
    ...(rows.length === 1 ? [] : [`${rows.length} refunds in the ledger instead of 1`]),
    ...(paidMinor === owedMinor ? [] : [`${paidMinor} minor units were paid instead of ${owedMinor}`]),
  ];
  const duplicateEffects = Math.max(rows.length - 1, 0);
  return { taskId: id, differences, journalRows: rows.length, expectedRows: 1, duplicateEffects };
}

async function releaseUntil(sandboxUrl: string, closed: AbortSignal): Promise<void> {
  while (!closed.aborted) {
    await ask(sandboxUrl, "release", {});
    await sleep(RELEASE_EVERY_MS);
  }
}

async function ask(sandboxUrl: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(new URL(`/sandbox/${path}`, sandboxUrl), {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`the sandbox answered ${path} with ${response.status}`);
  return response.json();
}
