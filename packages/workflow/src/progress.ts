import type { Position } from "./history.ts";
import { roundOf } from "./index-history.ts";
import { known } from "./known.ts";
import { type Survey, type Surveyed, standingsIn, surveyOf } from "./survey.ts";
import type { Workflow } from "./workflow.ts";

/** How far a workflow is, for people. */
export interface Progress {
  /** The node that was completed last, by the order of the starts; null before the first. */
  readonly lastCompleted: string | null;
  /** The nodes that may start now; while there are none, those that wait only for what is open or held. */
  readonly next: readonly string[];
  readonly open: readonly Position[];
  /** Nodes that wait for a person's retry, skip or abort. */
  readonly held: readonly string[];
  /** Nodes that are complete, of `total`. */
  readonly done: number;
  readonly total: number;
  /** As in "3 of 7 nodes done; last completed: intake; next: refund". */
  readonly inWords: string;
}

/** How far a workflow is: what a resume says before it goes on. Calls no function of the definition. */
export function progressOf(workflow: Workflow, history: Surveyed): Progress {
  const survey = surveyOf(workflow, history, null);
  const known = {
    lastCompleted: lastCompleted(survey),
    next: nextOf(survey),
    open: [...survey.index.open].map(({ node, round, item }) => ({ node, round, item })),
    held: standingsIn(survey, "held").map(({ node }) => node.name),
    done: standingsIn(survey, "complete").length,
    total: workflow.nodes.size,
  };
  return { ...known, inWords: inWords(known) };
}

function lastCompleted(survey: Survey): string | null {
  const complete = standingsIn(survey, "complete").map(({ node }) => ({
    name: node.name,
    at: lastStart(survey, node.name),
  }));
  return complete.reduce((last, each) => (each.at > last.at ? each : last), { name: null, at: -1 } as {
    name: string | null;
    at: number;
  }).name;
}

/** The place in the history of what a node's present round started last. */
function lastStart({ index, rounds }: Survey, name: string): number {
  const { own, items } = roundOf(index, name, known(rounds, name));
  return [...items.values()].reduce((last, { at }) => Math.max(last, at), own.at);
}

function nextOf(survey: Survey): readonly string[] {
  const underWay = standingsIn(survey, "partway").filter(({ standing }) => standing.toStart.length > 0);
  const now = new Set([
    ...underWay.map(({ node }) => node.name),
    ...names(survey, "ready"),
    ...names(survey, "unneeded"),
  ]);
  if (now.size > 0) return [...survey.workflow.nodes.keys()].filter((name) => now.has(name));
  return standingsIn(survey, "waiting")
    .filter(({ node }) => node.after.every((before) => known(survey.standings, before).is !== "waiting"))
    .map(({ node }) => node.name);
}

function names(survey: Survey, is: "ready" | "unneeded"): readonly string[] {
  return standingsIn(survey, is).map(({ node }) => node.name);
}

function inWords({ done, total, lastCompleted: last, next, held, open }: Omit<Progress, "inWords">): string {
  const parts = [
    `${done} of ${total} nodes done`,
    `last completed: ${last ?? "none"}`,
    ...listed("open", [...new Set(open.map(({ node }) => node))]),
    ...listed("waits for a decision about", held),
    ...listed("next", next),
  ];
  return parts.join("; ");
}

function listed(what: string, of: readonly string[]): readonly string[] {
  return of.length === 0 ? [] : [`${what}: ${of.join(", ")}`];
}
