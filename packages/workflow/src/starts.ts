import type { JsonValue } from "@holdpoint/core";
import { z } from "zod";
import type { PersonRequest, SettledStart, WorkflowHold, WorkStart } from "./decision.ts";
import { guarded, type Place } from "./guard.ts";
import type { Position } from "./history.ts";
import { itemOf, roundOf } from "./index-history.ts";
import { toJson } from "./json.ts";
import { known } from "./known.ts";
import type { MapOver, Node, Question, ScopeFunction, WorkNode } from "./node.ts";
import { fitting, readAs, VERDICT } from "./read-output.ts";
import { scopeFor } from "./scope.ts";
import type { ScopeValues } from "./scope-values.ts";
import { isMap } from "./standing.ts";
import type { Survey } from "./survey.ts";

/**
 * What a node that may start settles at once: a condition that says it is not needed, a gate's verdict, a map's list. Null:
 * nothing, it has work to do.
 */
export function settledStart(
  survey: Survey,
  node: Node,
  isAgain: boolean,
): { readonly value: SettledStart | null } | WorkflowHold {
  const place = placeOf(survey, node, null);
  const scope = scopeFor(survey, { node, item: null });
  if (node.when !== null && !isAgain) {
    const { when } = node;
    const needed = guarded(place, "when", () => fitting(readAs(z.boolean(), when(scope))));
    if ("do" in needed) return needed;
    if (!needed.value) return { value: passOver(survey, node) };
  }
  if (node.kind === "gate" && node.gate !== "approval") {
    return guarded(place, "judge", () => settled(place, "gate", toJson(fitting(readAs(VERDICT, node.judge(scope))))));
  }
  if (!isMap(node)) return { value: null };
  const { map } = node;
  return guarded(place, "forEach", () => settled(place, "map", listOf(map, { scope, most: survey.workflow.maxItems })));
}

/** A node that is not needed. */
export function passOver(survey: Survey, node: Node): SettledStart {
  const at = positionOf(placeOf(survey, node, null));
  return { ...at, kind: "pass", input: null, settled: { state: "passed_over", output: null } };
}

function settled(place: NodePlace, kind: "gate" | "map", output: JsonValue): SettledStart {
  return { ...positionOf(place), kind, input: null, settled: { state: "done", output } };
}

function listOf({ forEach, item }: MapOver, { scope, most }: { scope: ScopeValues; most: number }): JsonValue {
  const list = forEach(scope);
  if (!Array.isArray(list)) throw new TypeError("it gives no list");
  if (list.length > most) throw new TypeError(`it gives ${list.length} items; limits.items is ${most}`);
  for (const [index, each] of list.entries()) {
    const read = readAs(item, each);
    if (!read.ok) throw new TypeError(`item ${index}: ${read.message}`);
  }
  return toJson(list);
}

/** The start of a node's work, or of one item's; what it is frozen with is made here, once. */
export function workStart(
  survey: Survey,
  node: Node,
  item: number | null,
): { readonly value: WorkStart } | WorkflowHold {
  const place = placeOf(survey, node, item);
  const at = positionOf(place);
  const scope = scopeFor(survey, { node, item });
  if ("ask" in node) {
    const kind = node.kind === "human" ? "human" : "approval";
    return guarded(place, "question", () => {
      const request = requestOf(node, scope);
      return { ...at, kind, request, input: { question: request.question, shown: request.shown } };
    });
  }
  // What has a judge instead has been settled.
  return guarded(place, node.kind === "agent" ? "goal" : "input", () => startOf(node as WorkNode, { at, scope }));
}

type NodePlace = Place & Position;

function placeOf({ rounds, index }: Survey, { name }: Node, item: number | null): NodePlace {
  const round = known(rounds, name);
  const there = roundOf(index, name, round);
  const { execution } = item === null ? there.own : itemOf(there, item);
  return { node: name, round, item, callId: execution?.callId ?? null };
}

function positionOf({ node, round, item }: NodePlace): Position {
  return { node, round, item };
}

function startOf(node: WorkNode, { at, scope }: { at: Position; scope: ScopeValues }): WorkStart {
  const { retries } = node;
  if (node.kind === "agent") {
    const goal = textOf(node.goal, scope);
    return { ...at, kind: "agent", agent: node.agent, goal, input: { goal }, retries };
  }
  const input = toJson(node.input(scope));
  if (node.accepts !== null) fitting(readAs(node.accepts, input));
  if (node.kind === "tool") return { ...at, kind: "tool", tool: node.tool, input, retries };
  return { ...at, kind: "workflow", workflow: node.workflow, input, retries };
}

function requestOf(node: Extract<Node, { readonly ask: Question }>, scope: ScopeValues): PersonRequest {
  const { question, show, approvers, deadlineMs, onDeadline, fourEyes } = node.ask;
  const shown = show === null ? null : toJson(show(scope));
  const asked =
    node.kind === "human"
      ? ({ asks: "answer", answerSchema: node.answerSchema } as const)
      : ({ asks: "release", answerSchema: null } as const);
  return { question: textOf(question, scope), shown, approvers, deadlineMs, onDeadline, fourEyes, ...asked };
}

function textOf(make: ScopeFunction, scope: ScopeValues): string {
  return fitting(readAs(z.string().min(1), make(scope)));
}
