import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { type Family, openFamily } from "./family.ts";
import { LEAD } from "./family-agents.ts";

let family: Family;

beforeEach(async () => {
  family = await openFamily();
});
afterEach(() => family[Symbol.asyncDispose]());

async function untilStatus(runId: string, status: string) {
  return waitFor(
    async () => {
      const run = await family.as("olga").showRun({ runId });
      return run.status === status ? run : null;
    },
    { deadlineMs: 40_000, what: `${runId} to be ${status}` },
  );
}

describe("a child that ran and reports a missing permission", () => {
  test("holds its parent with step and reason, is called a success nowhere, and goes on once it has the permission", async () => {
    await Promise.all([family.worker({ processes: 1, slots: 4 }), family.sweeper()]);
    const alice = family.as("alice");
    const { id: sessionId } = await alice.createSession();
    const { id } = await alice.submitRun({ sessionId, agent: LEAD, goal: "grant 1,done 1" });
    const held = await untilStatus(id, "waiting_operator");
    const { items } = await alice.listChildren({ runId: id });
    const [child, other] = items;
    if (child === undefined || other === undefined) throw new Error("the parent has not started two runs");

    expect(held.waitingFor).toMatchObject({ kind: "operator", reason: "child_blocked" });
    expect(held.blockedBy).toEqual([
      { runId: child.id, agent: { name: "hand", version: "1" }, step: "grant", reason: "permission_missing" },
    ]);
    expect(held.sentence).toContain(
      `Waits for an operator: ${child.id} achieved nothing (permission missing, at step grant), since `,
    );
    expect(held.outcome).toBeNull();
    expect(held.actions).toMatchObject({ retry: null, skip: null, abort: null });
    expect(child).toMatchObject({ status: "completed", parent: id, ancestors: [id], outcome: { kind: "blocked" } });
    expect(child.startedBy).toMatchObject({ tool: "delegate", ordinal: 0, try: 1 });
    expect(child.sentence).toContain("Ended without achieving anything: permission missing, at step grant,");
    expect(other.outcome).toEqual({ kind: "succeeded" });

    const { exitCode, out } = await family.holdpoint("runs", "show", id);
    expect(exitCode).toBe(0);
    expect(out).toMatch(new RegExp(`Blocked by +${child.id} \\(hand@1\\) at grant: permission missing`));
    expect(out).toMatch(/Next +an operator decides \(retry, skip, abort\)/);
    expect(out).toMatch(
      new RegExp(`${id} {2}this run\n└─ ${child.id} {2}completed: blocked +hand@1 +at grant: permission missing`),
    );
    const children = await family.holdpoint("runs", "children", id);
    expect(children.out).toMatch(
      new RegExp(`${child.id} +completed: blocked +hand@1 +delegate +at grant: permission missing`),
    );
    expect(children.out).toMatch(new RegExp(`${other.id} +completed +hand@1 +delegate +succeeded`));
    const list = await family.holdpoint("runs", "list", "--parent", id, "--status", "completed");
    expect(list.out).toMatch(new RegExp(`${child.id} +completed: blocked `));
    const below = await family.holdpoint("runs", "show", child.id);
    expect(below.out).toMatch(new RegExp(`\n${id}\n└─ ${child.id} {2}this run, started by delegate \\(number 1\\)\n`));

    family.outside.ledger.push({ operationId: "permission", order: "granted" });
    const again = await family.holdpoint("runs", "decide", id, "retry", "--reason", "it has the permission now");
    expect(again.exitCode).toBe(0);
    const ended = await untilStatus(id, "completed");
    expect(ended).toMatchObject({ outcome: { kind: "succeeded" }, blockedBy: [] });
    const tries = await alice.listRuns({ parent: id });
    expect(tries.items.map(({ outcome, startedBy }) => [outcome?.kind, startedBy?.try])).toEqual([
      ["succeeded", 2],
      ["succeeded", 1],
      ["blocked", 1],
    ]);
  });
});
