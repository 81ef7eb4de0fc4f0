import { describe, expect, test } from "vitest";
import { plan } from "../src/plan.ts";
import type { Approval, Call, StepBody } from "../src/step.ts";
import { aCall, anApproval, anEffect, aReply, aResult, askedFor, NEEDS_APPROVAL, RULE, steps } from "./builders.ts";

function requested(call: Call) {
  return { call, approval: RULE, editedBy: null };
}

describe("plan, equal effects of one turn that need approval", () => {
  const same = { verdict: NEEDS_APPROVAL, effect: anEffect(), tool: "send_refund", argsHash: "same" };
  const first = aCall(1, same);
  const second = aCall(2, same);
  /** What comes next once the first of two has been decided, and had this result where it ran. */
  const after = (approvals: readonly Approval[], ...results: readonly StepBody[]) =>
    plan(askedFor([first, second], { approvals, steps: steps(aReply(["call_1", "call_2"]), ...results) }));
  /** Who is asked for what, where the whole turn waits. */
  const asked = (calls: readonly Call[], approvals: readonly Approval[] = []) => {
    const next = plan(
      askedFor(
        calls.toSorted((a, b) => a.ordinal - b.ordinal),
        { calls, approvals },
      ),
    );
    return next.do === "hold" ? next.requests.map(({ call }) => call.id) : next.do;
  };

  test("are asked for once, by the first of them", () => {
    const next = plan(askedFor([first, second, aCall(3, same)]));
    expect(next).toMatchObject({
      do: "hold",
      requests: [requested(first)],
      hold: { waitingFor: { subject: "call_1" } },
    });
    expect(asked([second, first])).toEqual(["call_1"]);
  });

  test.each([
    ["another tool", { tool: "send_letter" }],
    ["other arguments", { argsHash: "other" }],
    ["a tool that says they are distinct", { effect: anEffect({ equalCallsAreDistinct: true }) }],
    ["a read", { effect: { kind: "read" } }],
  ] as const)("are two where the second is %s: both are asked for", (_what, patch) => {
    expect(asked([first, aCall(2, { ...same, ...patch })])).toEqual(["call_1", "call_2"]);
  });

  test("are rejected both by the rejection of the first", () => {
    const rejected = anApproval(first, { state: "rejected", note: "no" });
    const told = after([rejected]);
    expect(told).toMatchObject({ do: "write_result", call: first, result: "rejected" });
    if (told.do !== "write_result") throw new Error(`${told.do} is no rejection`);
    const next = after([rejected], aResult("call_1", { result: "rejected", output: told.output }));
    const output = `${told.output} This is the answer to an equal call before it.`;
    expect(next).toEqual({ do: "write_result", call: second, result: "rejected", output });
  });

  test("are done once: the second is answered from the record of the first", () => {
    const spent = anApproval(first, { state: "spent" });
    const next = after([spent], aResult("call_1", { output: "re_1" }));
    expect(next).toEqual({ do: "write_result", call: second, result: "answered_from_record", output: "re_1" });
  });

  test("are no equals any more once the first was changed, nor after it failed: the second is asked for by itself", () => {
    const original = anApproval(first, { state: "superseded" });
    const edit = anApproval(first, { id: "edit_1", argsHash: "edited", editedBy: "user:bob" });
    expect(after([original, edit])).toMatchObject({
      do: "hold",
      requests: [],
      hold: { waitingFor: { subject: "call_1" } },
    });
    const asksForSecond = { do: "hold", requests: [requested(second)] };
    expect(after([original, { ...edit, state: "spent" }], aResult("call_1"))).toMatchObject(asksForSecond);
    expect(after([anApproval(first, { state: "spent" })], aResult("call_1", { result: "failed" }))).toMatchObject(
      asksForSecond,
    );
    expect(asked([first, second], [original, { ...edit, state: "withdrawn" }])).toEqual(["call_1", "call_2"]);
  });

  test.each(["pending", "approved", "rejected"] as const)(
    "are not asked for by the second while the first is %s and has no result",
    (state) => {
      const before = aCall(0, { verdict: NEEDS_APPROVAL });
      expect(asked([before, first, second], [anApproval(first, { state })])).toEqual(["call_0"]);
    },
  );
});
