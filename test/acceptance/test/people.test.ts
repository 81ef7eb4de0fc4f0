import { createClient, ProblemError } from "@holdpoint/client";
import { describe, expect, test } from "vitest";
import { createRandomSource } from "../tau-retail/killer.ts";
import { createApprover, retryWaiting } from "../tau-retail/people.ts";
import { requesterOfTask, taskOfRequester } from "../tau-retail/task-requester.ts";
import { tokenOf, tokensFor } from "../tau-retail/tokens.ts";

const approval = (id: string, approve: string | null = null) => ({
  id,
  argsHash: `hash of ${id}`,
  decisions: { approve },
});
type Pending = ReturnType<typeof approval>;

/** A client on an api that has these requests pending and notes what it is asked. */
function clientWith(pending: readonly Pending[], refuse?: string) {
  const real = createClient({ baseUrl: "http://127.0.0.1:1", token: "none" });
  const decided: unknown[] = [];
  const stop = new AbortController();
  let looks = 0;
  const client = {
    ...real,
    // Only what an approver reads is there.
    listApprovals: (async () => {
      looks += 1;
      if (looks === 3) stop.abort();
      return {
        items: pending.filter(({ id }) => !decided.some((each) => JSON.stringify(each).includes(id))),
        next: null,
      };
    }) as unknown as typeof real.listApprovals,
    decideApproval: (async (input: unknown) => {
      if (refuse !== undefined) throw problem(refuse);
      decided.push(input);
      return {};
    }) as unknown as typeof real.decideApproval,
    decideAsOperator: (async (input: unknown) => {
      decided.push(input);
      return {};
    }) as unknown as typeof real.decideAsOperator,
  };
  return { client, decided, stop: stop.signal };
}

function problem(rule: string): ProblemError {
  const base = { type: "about:blank", title: "Refused", status: 409, detail: `refused: ${rule}`, requestId: "r" };
  return new ProblemError({ ...base, code: "refused", rule });
}

const approverFor = (client: ReturnType<typeof clientWith>["client"], mayHaveDecided: number) =>
  createApprover({ client, random: createRandomSource("s"), mayHaveDecided: () => mayHaveDecided });

describe("an approver", () => {
  test("approves what is pending with the hash that was shown", async () => {
    const { client, decided, stop } = clientWith([approval("a"), approval("b")]);
    const approver = approverFor(client, 10);
    await approver.work(stop);
    expect(approver.decided).toBe(2);
    const inputs = ["a", "b"].map((id) => ({ approvalId: id, decision: "approve", argsHash: `hash of ${id}` }));
    expect(decided).toHaveLength(2);
    expect(decided).toEqual(expect.arrayContaining(inputs));
  });

  test("decides no more than may have been decided by now", async () => {
    const { client, decided, stop } = clientWith([approval("a"), approval("b"), approval("c")]);
    await approverFor(client, 2).work(stop);
    expect(decided).toHaveLength(2);
  });

  test("leaves alone what it has approved and a second one still has to", async () => {
    const { client, decided, stop } = clientWith([approval("a", "already_decided"), approval("b")]);
    const approver = approverFor(client, 10);
    await approver.work(stop);
    expect(approver.decided).toBe(1);
    expect(decided).toEqual([expect.objectContaining({ approvalId: "b" })]);
  });

  test("keeps a refusal to report it, and tries a busy run again", async () => {
    const refused = clientWith([approval("a")], "own_request");
    const approver = approverFor(refused.client, 10);
    await approver.work(refused.stop);
    expect(approver.decided).toBe(0);
    expect(approver.refusals).toContain("a: refused: own_request");
    const busy = clientWith([approval("a")], "busy");
    const patient = approverFor(busy.client, 10);
    await patient.work(busy.stop);
    expect(patient.refusals).toEqual([]);
  });
});

describe("retryWaiting", () => {
  test("retries exactly what waits for an operator and says why it waited", async () => {
    const { client, decided } = clientWith([]);
    const runs = [
      { id: "r1", status: "waiting_operator", waitingFor: { reason: "quarantined" } },
      { id: "r2", status: "running", waitingFor: null },
    ];
    // Only what the operator reads is there.
    const reasons = await retryWaiting(client, runs as unknown as Parameters<typeof retryWaiting>[1]);
    expect(reasons).toEqual(["quarantined"]);
    expect(decided).toEqual([expect.objectContaining({ runId: "r1", choice: "retry" })]);
  });
});

describe("callers", () => {
  test("each requester has one token, beside the approvers' and the operator's", () => {
    const cases = ["7", "8", "8"].map((id) => ({ name: id, requester: requesterOfTask(id), goal: "" }));
    const entries = tokensFor(cases).split(";");
    expect(entries).toEqual([
      "token-of-manager-mona=manager-mona:manager,finance",
      "token-of-finance-fay=finance-fay:finance",
      "token-of-operator-otto=operator-otto:operator",
      "token-of-task-7=task-7:requester",
      "token-of-task-8=task-8:requester",
    ]);
    expect(tokenOf("task-7")).toBe("token-of-task-7");
  });

  test("a requester leads back to its task, and nobody else does", () => {
    expect(taskOfRequester(requesterOfTask("v1-dev-3"))).toBe("v1-dev-3");
    expect(() => taskOfRequester("alice")).toThrow("alice stands for no task");
  });
});
