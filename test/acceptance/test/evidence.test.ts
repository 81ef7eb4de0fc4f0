import type { Reply } from "@holdpoint/protocol";
import { describe, expect, test } from "vitest";
import { countTakeovers } from "../tau-retail/evidence.ts";

type Entry = Reply<"showTimeline">["items"][number];

const at = "2026-01-01T00:00:00.000Z";
const actor = { kind: "worker", id: "w" };

function transition(event: string): Entry {
  return { kind: "transition", at, seq: 1, from: "queued", to: "running", event, actor, reason: null };
}

const step: Entry = { kind: "step", at, seq: 1, step: "tool_result", line: "find_order: succeeded" };

describe("countTakeovers", () => {
  test.each<[string, readonly string[], number]>([
    ["nothing", [], 0],
    ["a run that was never lost", ["Submitted", "Claimed", "Held", "FactArrived", "Claimed", "Ended"], 0],
    ["a lost run that nobody has claimed yet", ["Submitted", "Claimed", "OwnerGone", "Recovered"], 0],
    [
      "each claim after a loss",
      ["Claimed", "OwnerGone", "Recovered", "Claimed", "OwnerGone", "Recovered", "Claimed"],
      2,
    ],
    ["only the first claim after it", ["Claimed", "OwnerGone", "Recovered", "Claimed", "Released", "Claimed"], 1],
    ["one claim after two losses once", ["Claimed", "OwnerGone", "OwnerGone", "Claimed"], 1],
  ])("counts %s", (_what, events, takeovers) => {
    expect(countTakeovers([...events.map(transition), step])).toBe(takeovers);
  });
});
