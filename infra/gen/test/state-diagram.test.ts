import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { STATUSES } from "../../../packages/core/src/index.ts";
import { findDrift, PARTS, renderStateMachine, TARGET } from "../state-diagram.ts";
import { GROUPS, readTransitions } from "../transitions.ts";

const text = renderStateMachine();
const { transitions, matrix } = readTransitions();

describe("packages/core/STATE_MACHINE.md", () => {
  test("is what the transition table says", () => {
    expect(findDrift(readFileSync(TARGET, "utf8"), text)).toBeNull();
  });

  test("is not what it says once a word of it has changed, and the message names the command", () => {
    const changed = text.replace("Claimed", "Taken");
    expect(findDrift(changed, text)).toBe(
      "packages/core/STATE_MACHINE.md is not what the transition table says. Write it anew: node_modules/.bin/node infra/gen/state-diagram.ts",
    );
    expect(findDrift(null, text)).toContain("is missing");
  });

  test("shows each change of status in exactly one diagram", () => {
    const shown = transitions.map((transition) => PARTS.filter(({ holds }) => holds(transition)).length);
    expect(new Set(shown)).toEqual(new Set([1]));
  });

  test("shows every status, and every event and choice has its row", () => {
    expect(STATUSES.filter((status) => !text.includes(status))).toEqual([]);
    expect(GROUPS.flatMap(({ statuses }): readonly string[] => statuses)).toEqual(
      expect.arrayContaining([...STATUSES]),
    );
    expect(matrix).toHaveLength(22);
    expect(matrix.flatMap(({ cells }) => cells).filter((cell) => cell === "")).toEqual([]);
  });

  test("has arrows that the design names, and none out of an end", () => {
    const arrows = transitions.map(({ from, to, label }) => `${from} ${label} ${to}`);
    expect(arrows).toEqual(
      expect.arrayContaining([
        "queued Claimed running",
        "running OwnerGone lost",
        "lost Recovered queued",
        "running EffectUnknown outcome_unknown",
        "outcome_unknown EffectSettled running",
        "waiting FactArrived queued",
        "paused Resumed waiting",
        "running CancelRequested cancelling",
      ]),
    );
    expect(transitions.filter(({ from }) => ["completed", "failed", "cancelled"].includes(from))).toEqual([]);
  });
});
