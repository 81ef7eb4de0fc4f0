import type { AgentWakeUp } from "@holdpoint/queue";
import { openPublisher } from "@holdpoint/queue";
import { createSession, openStore, registerAgent, type Store, submitRun } from "@holdpoint/store";
import { migrate } from "@holdpoint/store/migrate";
import type { Contestant } from "./contestant.ts";
import { flushStatistics } from "./statistics.ts";

/** The agent whose runs are measured; `bench-agent.ts` defines it. */
export const BENCH_AGENT = { name: "bench", version: "1" } as const;

const REQUESTER = { kind: "requester", id: "bench" } as const;
const SUBMITTERS = 8;
const BULK = 500;

/** The product: runs are submitted through the store's own verb, one by one, each in a session of its own. */
export const product: Contestant = {
  name: "product",
  schema: { name: "product", migrate: (url) => migrate({ url }) },
  program: new URL("./worker-program.ts", import.meta.url),
  sql: {
    waits: "select exists (select from holdpoint.runs where ended_at is null) as waits",
    endedAt: "select extract(epoch from max(ended_at))::float8 as seconds from holdpoint.runs",
    steps: "select count(*)::int as steps from holdpoint.steps",
    stepTimes: "select extract(epoch from at)::float8 as seconds from holdpoint.steps",
    progress:
      "select sum(step_seq)::int as steps, min(step_seq) as least, max(step_seq) as most from holdpoint.runs where id = any($1)",
  },
  async openClient({ url, queue }) {
    const store = openStore({ url, applicationName: "bench" });
    await registerAgent(store, { ...BENCH_AGENT, tools: [] });
    const publisher = openPublisher(queue);
    return {
      async submit(runs) {
        const wakeUps = await submitAll(store, runs);
        await flushStatistics([store.pool]);
        return {
          ids: wakeUps.map(({ runId }) => runId),
          async announce() {
            for (let from = 0; from < wakeUps.length; from += BULK) {
              const { failed, error } = await publisher.publish(wakeUps.slice(from, from + BULK));
              if (failed > 0) throw new Error("Wake-ups were not published", { cause: error });
            }
          },
        };
      },
      async [Symbol.asyncDispose]() {
        await publisher[Symbol.asyncDispose]();
        await store[Symbol.asyncDispose]();
      },
    };
  },
};

async function submitAll(store: Store, runs: number): Promise<readonly AgentWakeUp[]> {
  const wakeUps: AgentWakeUp[] = [];
  let left = runs;
  const submitter = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      wakeUps.push(await submitOne(store));
    }
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
  return wakeUps;
}

async function submitOne(store: Store): Promise<AgentWakeUp> {
  const session = await createSession(store, REQUESTER.id);
  const submission = { sessionId: session.id, agent: BENCH_AGENT, goal: "Do the work.", actor: REQUESTER };
  const submitted = await submitRun(store, submission);
  if (submitted.result !== "submitted") throw new Error(`A run was not submitted: ${submitted.result}`);
  return { agent: BENCH_AGENT, runId: submitted.run.id, version: submitted.run.version };
}
