import { createSession, type Run, recordFact, type Submission, submitRun } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { z } from "zod";
import { passDeadlines } from "../../upkeep/src/sweeps/pass-deadlines.ts";
import type { WorkflowAgent } from "../src/index.ts";
import { aTool, type Behaviour } from "./desk.ts";
import { ALICE, type Fleet } from "./fleet.ts";

/** What most workflows of these tests are started with. */
export const ORDER = z.object({ order: z.string() });

let graphs = 0;

/** A name that no other workflow of the test process has. */
export function aGraphName(): string {
  graphs += 1;
  return `graph-${graphs}`;
}

/** A read that a node calls with an order. */
export function aRead(name: string, behave?: Behaviour) {
  return aTool(name, behave === undefined ? { effect: "read" } : { effect: "read", behave });
}

type Options = Pick<Submission, "instanceKey" | "retryOf">;

/** Submits a run of a workflow, as the answer says. */
export async function submitGraph(
  fleet: Fleet,
  agent: WorkflowAgent,
  options: Options = {},
  input = { order: "4411" },
) {
  const session = await createSession(fleet.store, ALICE.id);
  const given = options.retryOf === undefined ? { goal: "go", input } : { goal: null };
  return submitRun(fleet.store, { sessionId: session.id, agent, actor: ALICE, ...given, ...options });
}

/** Starts a run of a workflow; the worker is the test's business. */
export async function beginGraph(fleet: Fleet, agent: WorkflowAgent, options: Options = {}): Promise<string> {
  const submitted = await submitGraph(fleet, agent, options);
  if (submitted.result !== "submitted") throw new Error(`not submitted: ${submitted.result}`);
  await fleet.wake(submitted.run);
  return submitted.run.id;
}

/** What the graph has started, in order: node, round, item, and how its execution came out. */
export async function nodesOf(fleet: Fleet, runId: string): Promise<readonly string[]> {
  const { steps } = await fleet.load(runId);
  const results = new Map(
    steps.flatMap(({ body }) => (body.kind === "tool_result" ? [[body.callId, body.result]] : [])),
  );
  return steps.flatMap(({ body }) =>
    body.kind === "nodes_started"
      ? body.nodes.map(({ id, node, round, item, settled }) => {
          const place = item === null ? `${node}#${round}` : `${node}#${round}.${item}`;
          return `${place} ${settled?.state ?? results.get(id) ?? "open"}`;
        })
      : [],
  );
}

/** The one request that is pending. */
export async function pendingRequest(fleet: Fleet, runId: string) {
  const { approvals } = await fleet.load(runId);
  const pending = approvals.filter(({ state }) => state === "pending");
  const [request] = pending;
  if (request === undefined || pending.length > 1) throw new Error(`${pending.length} requests are pending`);
  return request;
}

/** The run as it is held for an operator with this reason. */
export async function untilHeld(fleet: Fleet, runId: string, reason: string): Promise<Run> {
  const held = async () => {
    const { run } = await fleet.load(runId);
    return run.state.status === "waiting_operator" && run.state.waitingFor?.reason === reason ? run : null;
  };
  return waitFor(held, { deadlineMs: 25_000, what: `the run to be held as ${reason}` });
}

/** Why the run was moved last, as its history says. */
export async function lastReason(fleet: Fleet, runId: string): Promise<unknown> {
  return (await fleet.rows("transitions", runId, "seq")).at(-1)?.reason;
}

/** One pass of the sweep for deadlines, approvals' and others'. */
export async function passAllDeadlines({ store, publisher }: Fleet): Promise<void> {
  await passDeadlines.run({ store, publisher, id: "test", graceMs: 1_000, limit: 100, number: 1 });
}

/** The children that a run has started, in their order. */
export async function childrenOf(fleet: Fleet, runId: string) {
  return (await fleet.load(runId)).children;
}

/** The requester answers a run that has asked. */
export async function say(fleet: Fleet, runId: string, text: string): Promise<void> {
  await recordFact(fleet.store, { runId, kind: "answer", text, actor: ALICE });
  await fleet.wake((await fleet.load(runId)).run);
}
