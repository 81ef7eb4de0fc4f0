import type { Choice, History } from "./history.ts";
import { known } from "./known.ts";
import { type Survey, standingsIn, surveyOf } from "./survey.ts";
import type { Workflow } from "./workflow.ts";

/**
 * What a run tries again that goes on where another has failed, from what all before it have done: each execution that
 * stands in the way, as if an operator had ordered its retry. Who goes on after several asks after each of them, since what
 * was tried again is a part of what the next was made from.
 */
export function retriesOf(
  workflow: Workflow,
  { executions, choices: before }: Pick<History, "executions" | "choices">,
): readonly Choice[] {
  const choices: Choice[] = [];
  // A gate that sends work back once more may show the next. Each pass orders retries that were not ordered before, so
  // there are never more than executions.
  for (const _ of executions) {
    const held = heldIn(surveyOf(workflow, { executions, choices: [...before, ...choices] }, null));
    if (held.length === 0) break;
    choices.push(...held);
  }
  return choices;
}

function heldIn(survey: Survey): readonly Choice[] {
  return standingsIn(survey, "held").map(({ node: { name: node }, standing: { problem } }) => {
    const { item, callId } = problem;
    return { choice: "retry", node, round: known(survey.rounds, node), item, callId };
  });
}
