import {
  type ApprovalRule,
  type Call,
  type JsonValue,
  type Next,
  operatorHold,
  type StartedNode,
  stoppingHold,
  type Verdict,
} from "@holdpoint/core";
import { hashArgs, newId, operationIdOf } from "@holdpoint/store";
import {
  type Decision,
  decide,
  isSettled,
  type NodeStart,
  type PersonRequest,
  type WorkflowHold,
  type WorkStart,
} from "@holdpoint/workflow";
import { actOnStop } from "./act-on-children.ts";
import { actOnSettlement } from "./act-on-settlement.ts";
import type { WorkflowAgent } from "./bind-workflow.ts";
import { endWith } from "./end-run.ts";
import { holdRun } from "./hold-run.ts";
import { freezeCall } from "./judge-calls.ts";
import type { Stored } from "./owned-run.ts";
import type { Act } from "./run-context.ts";
import { placeOf } from "./workflow-history.ts";

type Decide = Extract<Next, { do: "decide" }>;

/** Asks a workflow's graph what is ready, and commits what it starts: the rows alone decide, whoever asks. */
export async function actOnGraph(act: Act, agent: WorkflowAgent, { turn, waiting }: Decide): Promise<Stored> {
  const { run, outputs } = act;
  const wholes = await run.untilStored(() => outputs.of(run.view));
  const decision = decide(agent.workflow, run.workflowHistory(agent.workflow, wholes));
  switch (decision.do) {
    case "start":
      return start(act, { agent, turn, nodes: decision.nodes });
    case "wait":
      if (waiting === null) throw new RangeError(`Workflow ${agent.name} waits, and nothing is open`);
      return waiting.do === "poll" ? actOnSettlement(act, waiting) : holdRun(act, waiting);
    case "hold":
      return agent.onFailure === "fail" ? fail(act, decision) : holdFor(act, decision);
    case "end":
      return end(act, decision);
  }
}

async function start(
  act: Act,
  {
    agent,
    turn,
    nodes,
  }: { readonly agent: WorkflowAgent; readonly turn: number; readonly nodes: readonly NodeStart[] },
): Promise<Stored> {
  const started = nodes.map((node, ordinal) => startedNode(agent, node, { turn, ordinal }));
  const calls = started.flatMap(({ call }) => (call === null ? [] : [call]));
  return act.run.commit({
    steps: [
      { kind: "nodes_started", turn, callIds: calls.map(({ id }) => id), nodes: started.map(({ record }) => record) },
    ],
    calls,
    currentStep: nodes[0]?.node ?? agent.name,
    progress: false,
  });
}

interface Started {
  readonly record: StartedNode;
  readonly call: Call | null;
}

function startedNode(
  agent: WorkflowAgent,
  node: NodeStart,
  at: { readonly turn: number; readonly ordinal: number },
): Started {
  const id = newId();
  const place = { id, node: node.node, round: node.round, item: node.item };
  if (isSettled(node)) return { record: { ...place, settled: node.settled }, call: null };
  return { record: { ...place, settled: null }, call: callOf(agent, node, { ...at, id }) };
}

function callOf(
  agent: WorkflowAgent,
  node: WorkStart,
  { id, turn, ordinal }: { readonly id: string; readonly turn: number; readonly ordinal: number },
): Call {
  const name = node.kind === "tool" ? node.tool : node.node;
  const tool = agent.tools.get(name);
  if (tool === undefined) throw new RangeError(`Workflow ${agent.name} has nothing that runs node ${node.node}`);
  const { args, verdict } = freezeCall(tool, argumentsOf(node));
  const { effect, timeoutMs, retries, throttledForMs, service } = tool;
  return {
    id,
    turn,
    ordinal,
    // What is before the @ names the piece of work, whichever time it is done.
    toolCallId: `${node.node}${node.item === null ? "" : `/${node.item}`}@${node.round}`,
    tool: name,
    args,
    argsHash: hashArgs(name, args),
    operationId: operationIdOf(id),
    effect,
    verdict: verdict.kind === "allowed" ? verdictOf(node) : verdict,
    timeoutMs,
    retries: "retries" in node ? (node.retries ?? retries) : retries,
    throttledForMs,
    service,
  };
}

function argumentsOf(node: WorkStart): JsonValue {
  switch (node.kind) {
    case "agent":
      return { goal: node.goal, input: node.input };
    case "workflow":
      return { goal: `Workflow ${node.workflow.name}`, input: node.input };
    case "tool":
      return node.input;
    case "human":
    case "approval":
      return { question: node.request.question, shown: node.request.shown };
  }
}

function verdictOf(node: WorkStart): Verdict {
  if (node.kind !== "human" && node.kind !== "approval") return { kind: "allowed" };
  return { kind: "needs_approval", approval: termsOf(node.node, node.request) };
}

const DAY_MS = 86_400_000;

/** What a node asks a person, as a request. Whether no answer goes to an operator the graph decides. */
function termsOf(node: string, { approvers, deadlineMs, asks, answerSchema, fourEyes }: PersonRequest): ApprovalRule {
  return {
    rule: node,
    approvers,
    quorum: 1,
    veto: true,
    fourEyes,
    decisions: asks === "answer" ? ["approve", "reject", "respond"] : ["approve", "reject"],
    answerSchema,
    deadlineMs: deadlineMs ?? DAY_MS,
    onDeadline: "reject",
    remindAfterMs: [],
    escalation: [],
    validForMs: DAY_MS,
  };
}

const MESSAGE_LIMIT = 500;

/** A person retries, skips or aborts; what is open meanwhile goes on. */
function holdFor({ run, context }: Act, { reason, message, ...place }: WorkflowHold): Promise<Stored> {
  const { id: runId } = run.view.run;
  context.log.warn({ event: "node.held", runId, node: place.node, reason }, "node held");
  // An approval whose deadline has passed is held under that name by its own rule; this one was left to the graph.
  const hold = operatorHold(
    reason === "deadline_passed" ? "node_deadline_passed" : reason,
    place.callId ?? placeOf(place),
  );
  const currentStep = place.node ?? "result";
  return run.move([{ type: "Held", hold }], { currentStep }, `${reason}: ${message}`.slice(0, MESSAGE_LIMIT));
}

function fail(act: Act, { reason, message, node }: WorkflowHold): Promise<Stored> {
  const { run } = act;
  const stop = stopLive(act);
  if (stop !== null) return stop;
  const why = `${reason}: ${message}`.slice(0, MESSAGE_LIMIT);
  const ended = { type: "Ended", status: "failed", outcome: null, reason } as const;
  return run.move([ended], { currentStep: node ?? "result" }, why);
}

/** A run ends after all that it has started; null if nothing of that lives any more. */
function stopLive(act: Act): Promise<Stored> | null {
  const { children, run } = act.run.view;
  if (run.state.liveChildren === 0) return null;
  const live = children.filter(({ ended, stopRequested }) => !ended && !stopRequested);
  return live.length > 0 ? actOnStop(act, live) : holdRun(act, { hold: stoppingHold({ children }), requests: [] });
}

async function end(act: Act, { outcome, output }: Extract<Decision, { do: "end" }>): Promise<Stored> {
  return stopLive(act) ?? endWith(act, { outcome, brought: output });
}
