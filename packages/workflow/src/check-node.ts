import { z } from "zod";
import { LIMITS } from "./limits.ts";
import type { UntypedDefinition } from "./make-node.ts";
import { personOutput, readAs } from "./read-output.ts";

/** As agents' names: what a run, a queue and a command line can carry. */
export const NAME = /^[a-z][a-z0-9-]{0,63}$/;
export const VERSION = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

/** What is wrong with a number; nothing where it is a whole one within its range. */
export function checkNumber(
  name: string,
  value: number | undefined,
  { least, most = Number.MAX_SAFE_INTEGER }: { readonly least: number; readonly most?: number },
): readonly string[] {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least && value <= most)) return [];
  return [`${name} is ${value}; it must be a whole number from ${least} to ${most}`];
}

/** What each kind has to say, as far as its types might not have been looked at. */
const NEEDS = {
  agent: ["agent", "goal", "output"],
  tool: ["tool", "input", "output"],
  workflow: ["workflow", "input", "output"],
  human: ["question", "approvers"],
  gate: ["gate"],
} as const satisfies Record<UntypedDefinition["kind"], readonly (keyof UntypedDefinition)[]>;

const GATE_NEEDS = {
  feedback: ["judge", "rework"],
  go_no_go: ["judge"],
  approval: ["question", "approvers"],
} as const satisfies Record<NonNullable<UntypedDefinition["gate"]>, readonly (keyof UntypedDefinition)[]>;

/** What is wrong with one node by itself. */
export function checkNode(name: string, node: UntypedDefinition): readonly string[] {
  const problems = [
    ...(NAME.test(name) ? [] : ["a node's name is made of a-z, 0-9 and -, at most 64, letter first"]),
    ...missing(node),
    ...checkMap(node),
    ...checkPeople(node),
    ...checkSkip(node),
    ...checkNumber("retries", node.retries, { least: 0, most: LIMITS.retries }),
    ...checkNumber("atMost", node.atMost, { least: 1, most: LIMITS.atOnce }),
    ...checkNumber("deadlineMs", node.deadlineMs, { least: 1 }),
    ...checkRounds(node),
  ];
  return problems.map((problem) => `node "${name}": ${problem}`);
}

function missing(node: UntypedDefinition): readonly string[] {
  const ofKind = NEEDS[node.kind] as readonly (keyof UntypedDefinition)[] | undefined;
  if (ofKind === undefined) return [`kind "${node.kind}" is none of ${Object.keys(NEEDS).join(", ")}`];
  const { gate } = node;
  const ofGate = gate === undefined ? [] : (GATE_NEEDS[gate] as readonly (keyof UntypedDefinition)[] | undefined);
  if (ofGate === undefined) return [`gate "${gate}" is none of ${Object.keys(GATE_NEEDS).join(", ")}`];
  const needs = [...ofKind, ...ofGate].filter((need) => node[need] === undefined);
  return needs.map((need) => `its kind needs "${need}"`);
}

const MAPPABLE: ReadonlySet<string> = new Set(["agent", "tool", "workflow"]);

function checkMap({ kind, forEach, item, atMost }: UntypedDefinition): readonly string[] {
  if (forEach === undefined) {
    if (item === undefined && atMost === undefined) return [];
    return ['"item" and "atMost" say how a map runs: give it "forEach", or leave them out'];
  }
  if (!MAPPABLE.has(kind)) return [`a ${kind} node has no "forEach": put what it asks for each item into one question`];
  return item === undefined ? ['"forEach" needs "item", the schema of its items'] : [];
}

function checkPeople({ approvers }: UntypedDefinition): readonly string[] {
  if (approvers === undefined) return [];
  const { roles = [], users = [] } = approvers;
  return roles.length + users.length > 0 ? [] : ['"approvers" names nobody: give it roles or users'];
}

function checkSkip({ kind, whenSkipped = null, output = z.json() }: UntypedDefinition): readonly string[] {
  if (whenSkipped === null) return [];
  const read = readAs(kind === "human" ? personOutput(output) : output, whenSkipped);
  return read.ok ? [] : [`"whenSkipped" does not fit its output: ${read.message}`];
}

function checkRounds({ rework, rounds, otherwise }: UntypedDefinition): readonly string[] {
  if (rework === undefined)
    return rounds === undefined ? [] : ['"rounds" needs "rework": where a no sends the work to'];
  if (otherwise !== undefined) return ['it has both "rework" and "otherwise": a no leads to one of them'];
  const bad = checkNumber("rounds", rounds, { least: 1, most: LIMITS.rounds });
  return bad.map((problem) => `${problem}, or its loop would have no bound`);
}
