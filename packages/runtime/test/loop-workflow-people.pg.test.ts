import { decideApproval } from "@holdpoint/store";
import { moveClock } from "@holdpoint/testkit";
import { defineWorkflow, type PersonOutput } from "@holdpoint/workflow";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { bindWorkflow } from "../src/index.ts";
import {
  aGraphName,
  aRead,
  beginGraph,
  nodesOf,
  ORDER,
  passAllDeadlines,
  pendingRequest,
  say,
  untilHeld,
} from "./a-graph.ts";
import { aDesk, aTool, NEEDS_MANAGER } from "./desk.ts";
import { ALICE, type Fleet, MANAGER, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterEach(() => moveClock(fleet.url, 0));
afterAll(() => fleet[Symbol.asyncDispose]());

const HOUR_MS = 3_600_000;
const APPROVERS = { roles: ["manager"] } as const;

/** A workflow that asks which size is meant, and brings home whatever came back. */
function aQuestion(onDeadline: "reject" | "operator" = "reject") {
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      size: {
        kind: "human",
        question: ({ input }) => `Which size of ${input.order}?`,
        show: () => ({ sizes: ["s", "m"] }),
        approvers: APPROVERS,
        deadlineMs: HOUR_MS,
        onDeadline,
        output: z.object({ size: z.enum(["s", "m"]) }),
      },
    },
    result: ({ need }) => need("size"),
  });
  return bindWorkflow(workflow);
}

/** A workflow that asks whoever it is for. */
function askingItsRequester(fourEyes: boolean) {
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      address: {
        kind: "human",
        question: () => "Where to?",
        approvers: { users: [ALICE.id] },
        fourEyes,
        output: z.string(),
      },
    },
    result: ({ need }) => need("address").answer,
  });
  return bindWorkflow(workflow);
}

/** A workflow whose tool prepares what a manager then releases, or sends back. */
function aRelease(onNo: { rework: "prepare"; rounds?: number } | { otherwise: "block" | "hold" }) {
  const prepare = aRead("prepare", async (times) => `offer ${times}`);
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: {
      prepare: {
        kind: "tool",
        tool: { name: "prepare" },
        input: ({ feedback }) => ({ order: feedback?.text ?? "first" }),
        output: z.string(),
      },
      release: {
        kind: "gate",
        gate: "approval",
        after: ["prepare"],
        question: () => "Send it?",
        approvers: APPROVERS,
        ...onNo,
      },
    },
    result: ({ need }) => [need("prepare"), need("release")],
  });
  return { prepare, agent: bindWorkflow(workflow, { tools: [prepare.tool] }) };
}

async function begin(agent: ReturnType<typeof aQuestion>): Promise<string> {
  await fleet.start(agent);
  const id = await beginGraph(fleet, agent);
  await fleet.untilStatus(id, "waiting_approval");
  return id;
}

async function answer(runId: string, given: PersonOutput<unknown>["answer"]) {
  const { id: approvalId, argsHash } = await pendingRequest(fleet, runId);
  const decision = { approvalId, argsHash, decision: "respond", note: "said at the desk", actor: MANAGER } as const;
  return decideApproval(fleet.store, { ...decision, answer: given as never });
}

describe("a human node", () => {
  test("takes only an answer that fits, says what is wrong with another, and passes on what was said", async () => {
    const id = await begin(aQuestion());
    const { terms, args } = await pendingRequest(fleet, id);
    expect(args).toEqual({ question: "Which size of 4411?", shown: { sizes: ["s", "m"] } });
    expect(terms).toMatchObject({ decisions: ["approve", "reject", "respond"], deadlineMs: HOUR_MS });
    const wrong = await answer(id, { size: "xl" });
    expect(wrong).toMatchObject({ result: "invalid", problem: expect.stringMatching(/^answer: .*size/s) });
    expect((await answer(id, { size: "m" })).result).toBe("accepted");
    await fleet.wake((await fleet.load(id)).run);
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended.result).toEqual({ decision: "answered", note: "said at the desk", answer: { size: "m" } });
    expect(ended.state.outcome).toEqual({ kind: "succeeded" });
  });

  test("asks the requester of the run only where it says that four eyes are not needed", async () => {
    const respond = async (runId: string) => {
      const { id: approvalId, argsHash } = await pendingRequest(fleet, runId);
      const actor = { kind: "approver", id: ALICE.id } as const;
      return decideApproval(fleet.store, {
        approvalId,
        argsHash,
        decision: "respond",
        note: null,
        actor,
        answer: "home",
      });
    };
    const guarded = await begin(askingItsRequester(true));
    expect(await respond(guarded)).toMatchObject({ result: "refused", rule: "own_request" });
    const open = await begin(askingItsRequester(false));
    expect((await respond(open)).result).toBe("accepted");
    await fleet.wake((await fleet.load(open)).run);
    expect((await fleet.untilStatus(open, "completed")).result).toBe("home");
  });

  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("that is told to %s has that for its answer, with the note", async (decision, decided) => {
    const id = await begin(aQuestion());
    await fleet.decide(id, decision);
    const { result } = await fleet.untilStatus(id, "completed");
    expect(result).toEqual({ decision: decided, note: "as told", answer: null });
  });

  test("whom nobody answers in time goes on with that, or is left to an operator, who has it asked anew", async () => {
    const ids = [await begin(aQuestion()), await begin(aQuestion("operator"))];
    await moveClock(fleet.url, HOUR_MS + 1_000);
    await passAllDeadlines(fleet);
    const [goesOn = "", isHeld = ""] = ids;
    expect((await fleet.untilStatus(goesOn, "completed")).result).toEqual({
      decision: "expired",
      note: null,
      answer: null,
    });
    await untilHeld(fleet, isHeld, "node_deadline_passed");
    await fleet.order(isHeld, { choice: "retry" });
    await fleet.untilStatus(isHeld, "waiting_approval");
    expect((await answer(isHeld, { size: "s" })).result).toBe("accepted");
    await fleet.wake((await fleet.load(isHeld)).run);
    await fleet.untilStatus(isHeld, "completed");
    expect(await nodesOf(fleet, isHeld)).toEqual(["size#1 expired", "size#1 answered"]);
  });

  test("whom nobody answers in time and an operator passes over makes the run one that achieved a part", async () => {
    const id = await begin(aQuestion("operator"));
    await moveClock(fleet.url, HOUR_MS + 1_000);
    await passAllDeadlines(fleet);
    await untilHeld(fleet, id, "node_deadline_passed");
    await fleet.order(id, { choice: "skip" });
    // What it needs is not there: that is for a person as well.
    await untilHeld(fleet, id, "graph_error");
    await fleet.order(id, { choice: "skip" });
    const { state } = await fleet.untilStatus(id, "completed");
    expect(state.outcome).toEqual({ kind: "partial", reason: "skipped: size, the result" });
  });
});

describe("an approval gate", () => {
  test("sends the work back with the reason, and asks again about what came of it", async () => {
    const { prepare, agent } = aRelease({ rework: "prepare" });
    const id = await begin(agent);
    await fleet.decide(id, "reject");
    await fleet.untilStatus(id, "waiting_approval");
    expect((await fleet.load(id)).calls.map(({ args }) => args)).toMatchObject([
      { order: "first" },
      {},
      { order: "as told" },
      {},
    ]);
    await fleet.decide(id, "approve");
    const ended = await fleet.untilStatus(id, "completed");
    expect(ended.result).toEqual(["offer 2", { pass: true, feedback: "as told" }]);
    expect(prepare.executed).toHaveLength(2);
    expect(await nodesOf(fleet, id)).toEqual([
      "prepare#1 succeeded",
      "release#1 rejected",
      "prepare#2 succeeded",
      "release#2 succeeded",
    ]);
  });

  test("whose rounds are over goes to a person, never round again by itself", async () => {
    const { prepare, agent } = aRelease({ rework: "prepare", rounds: 1 });
    const id = await begin(agent);
    await fleet.decide(id, "reject");
    await untilHeld(fleet, id, "rounds_exhausted");
    expect(prepare.executed).toHaveLength(1);
    await fleet.order(id, { choice: "retry" });
    await fleet.untilStatus(id, "waiting_approval");
    expect(prepare.executed).toHaveLength(2);
    await fleet.decide(id, "approve");
    await fleet.untilStatus(id, "completed");
  });

  test("that is refused ends the workflow as blocked", async () => {
    const { agent } = aRelease({ otherwise: "block" });
    const id = await begin(agent);
    await fleet.decide(id, "reject");
    const { state } = await fleet.untilStatus(id, "completed");
    expect(state.outcome).toEqual({ kind: "blocked", step: "release", reason: "as told" });
  });

  test("that nobody answers in time is refused", async () => {
    const { agent } = aRelease({ otherwise: "hold" });
    const id = await begin(agent);
    await moveClock(fleet.url, 24 * HOUR_MS + 1_000);
    await passAllDeadlines(fleet);
    await untilHeld(fleet, id, "no_go");
    await fleet.order(id, { choice: "abort" });
    expect((await fleet.load(id)).run.state).toMatchObject({ status: "cancelled", endReason: "aborted" });
  });
});

test("people are asked beside each other where a workflow has several questions open at once", async () => {
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    parallel: 2,
    nodes: {
      first: { kind: "human", question: () => "First?", approvers: APPROVERS },
      second: { kind: "human", question: () => "Second?", approvers: APPROVERS },
    },
  });
  const agent = bindWorkflow(workflow);
  const id = await begin(agent);
  await fleet.decide(id, "approve", "reject");
  await fleet.untilStatus(id, "completed");
  expect(await nodesOf(fleet, id)).toEqual(["first#1 succeeded", "second#1 rejected"]);
});

test("a tool that needs a release is a failed node when it is refused, and is asked for anew on a retry", async () => {
  const pay = aTool("pay", { effect: { key: { validForMs: HOUR_MS } }, rules: NEEDS_MANAGER });
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    nodes: { pay: { kind: "tool", tool: { name: "pay" }, input: ({ input }) => input, output: z.string() } },
  });
  const agent = bindWorkflow(workflow, { tools: [pay.tool] });
  const id = await begin(agent);
  await fleet.decide(id, "reject");
  await untilHeld(fleet, id, "node_failed");
  await fleet.order(id, { choice: "retry" });
  await fleet.untilStatus(id, "waiting_approval");
  await fleet.decide(id, "approve");
  await fleet.untilStatus(id, "completed");
  expect(pay.executed).toHaveLength(1);
});

test("what a person is asked while an agent still works is asked when that has ended, and nothing is lost", async () => {
  const clerk = aDesk([{ text: "?" }, { text: "done" }], []);
  const workflow = defineWorkflow({
    name: aGraphName(),
    version: "1",
    input: ORDER,
    parallel: 2,
    nodes: {
      work: {
        kind: "agent",
        agent: { name: clerk.name, version: clerk.version },
        goal: () => "work",
        output: z.string(),
      },
      sign: { kind: "human", question: () => "Sign?", approvers: APPROVERS },
    },
  });
  const agent = bindWorkflow(workflow);
  await fleet.start(clerk);
  await fleet.start(agent);
  const id = await beginGraph(fleet, agent);
  const waiting = await fleet.untilStatus(id, "waiting_dependency");
  expect(waiting.state.waitingFor?.kind).toBe("child");
  const [child] = (await fleet.load(id)).children;
  const asking = await fleet.untilStatus(child?.id ?? "", "waiting_input");
  await say(fleet, asking.id, "go on");
  await fleet.untilStatus(id, "waiting_approval");
  await fleet.decide(id, "approve");
  await fleet.untilStatus(id, "completed");
});
