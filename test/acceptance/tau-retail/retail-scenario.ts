import { join } from "node:path";
import { z } from "zod";
import { RETAIL_AGENT } from "./agent-name.ts";
import { startAndWait } from "./fleet/program.ts";
import { openingMessage } from "./recorded-model.ts";
import { compareTask, type TaskFinding } from "./report.ts";
import { type ExpectedTask, loadExpected, loadTasks, type RetailTask } from "./retail-data.ts";
import { isToolName, sha256, TOOL_OFFERS } from "./retail-store.ts";
import type { CaseEvidence, Scenario, ScenarioOptions } from "./scenario.ts";
import { createStoreClient, type StoreClient } from "./store-client.ts";
import { requesterOfTask } from "./task-requester.ts";

const SERVICE = new URL("./store-service/main.ts", import.meta.url);
const HELD_SHARE = 0.6;
/** Below the tools' deadline: a reply that nobody kills for arrives in the end. */
const MAX_HOLD_MS = 5_000;

/** The 114 retail tasks on a store service of its own. */
export async function openRetailScenario(folder: string, options: ScenarioOptions): Promise<Scenario> {
  const { seed, databaseUrl, logDir, env } = options;
  const [tasks, expected] = await Promise.all([loadTasks(folder, "base"), loadExpected(folder, "base")]);
  const { program, line } = await startAndWait(
    {
      name: "store",
      main: SERVICE,
      args: ["--database-url", databaseUrl, "--data", folder],
      env,
      logFile: join(logDir, "store.log"),
    },
    "store.ready",
  );
  const storeUrl = `http://127.0.0.1:${z.object({ port: z.number() }).parse(line).port}`;
  const store = createStoreClient(storeUrl);
  await store.holdReplies({ seed, share: HELD_SHARE, maxHoldMs: MAX_HOLD_MS });
  return {
    title: `${tasks.length} tasks of tau-retail`,
    agent: RETAIL_AGENT,
    agents: {
      module: new URL("./agents.ts", import.meta.url),
      env: { RETAIL_STORE_URL: storeUrl, HOLDPOINT_RETAIL_DATA: folder },
    },
    cases: tasks.map((task) => ({
      name: task.id,
      requester: requesterOfTask(task.id),
      goal: openingMessage(task),
    })),
    approvals: tasks.flatMap(({ actions }) => actions.filter(({ name }) => isWrite(name))).length,
    plan: { kills: 34, killsAfterWrite: 13, minDelayMs: 600, maxDelayMs: 1_800, machineShare: 0.1 },
    minimums: { kills: 30, killsAfterWrite: 10, takeovers: 20 },
    heldReplies: async () => (await store.heldReplies()).held,
    letRepliesGo: async () => {
      await store.holdReplies({ seed, share: 0, maxHoldMs: MAX_HOLD_MS });
      await store.releaseReplies();
    },
    judge: (evidence) =>
      Promise.all(
        tasks.map((task) =>
          judgeTask(store, { task, expected: expected.tasks[task.id] }, evidenceOf(evidence, task.id)),
        ),
      ),
    [Symbol.asyncDispose]: () => program.stop(),
  };
}

function isWrite(name: string): boolean {
  return isToolName(name) && TOOL_OFFERS[name] !== "read";
}

function evidenceOf(evidence: readonly CaseEvidence[], taskId: string): CaseEvidence {
  const found = evidence.find(({ name }) => name === taskId);
  if (found === undefined) throw new Error(`task ${taskId} was never submitted`);
  return found;
}

async function judgeTask(
  store: StoreClient,
  { task, expected }: { readonly task: RetailTask; readonly expected: ExpectedTask | undefined },
  { status, outcome, results }: CaseEvidence,
): Promise<TaskFinding> {
  if (expected === undefined) throw new Error(`expected.json says nothing of task ${task.id}`);
  const [stateSha256, journal] = await Promise.all([store.stateHashOf(task.id), store.journalOf(task.id)]);
  return compareTask(task, expected, {
    taskId: task.id,
    runStatus: status,
    runOutcome: outcome,
    // What is no text is no result of this store, and equals no expected hash.
    resultsSha256: results.map(({ output }) => sha256(typeof output === "string" ? output : JSON.stringify(output))),
    stateSha256,
    journal,
  });
}
