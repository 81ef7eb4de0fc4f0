import {
  type Cell,
  cellFor,
  type EventType,
  type RunEvent,
  reduce,
  STATUSES,
  type Status,
} from "../../packages/core/src/index.ts";
import { ALL_EVENTS, raiserOf } from "../../packages/core/test/all-events.ts";
import { exploreRuns, type Happening } from "../../packages/core/test/reachable-runs.ts";

/** Statuses that the table treats alike, shown as one. */
export const GROUPS = [
  { name: "queued", statuses: ["queued"] },
  { name: "running", statuses: ["running"] },
  { name: "waiting", statuses: ["waiting_input", "waiting_approval", "waiting_dependency"] },
  { name: "waiting_operator", statuses: ["waiting_operator"] },
  { name: "retrying", statuses: ["retrying"] },
  { name: "outcome_unknown", statuses: ["outcome_unknown"] },
  { name: "paused", statuses: ["paused"] },
  { name: "lost", statuses: ["lost"] },
  { name: "cancelling", statuses: ["cancelling"] },
  { name: "ended", statuses: ["completed", "failed", "cancelled"] },
] as const satisfies readonly { readonly name: string; readonly statuses: readonly Status[] }[];
export type Group = (typeof GROUPS)[number];

/** A change of status that can really come about: `ordinary` where no stop, pause, loss or open attempt plays a part. */
export interface Transition {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly type: EventType;
  readonly ordinary: boolean;
}

/** One row of the matrix: an event, or one of an operator's choices. */
export interface MatrixRow {
  readonly label: string;
  readonly cells: readonly string[];
}

/** Everything that can happen, as the document shows it. */
export function readTransitions(): {
  readonly transitions: readonly Transition[];
  readonly matrix: readonly MatrixRow[];
} {
  const happenings = exploreRuns();
  return { transitions: distinct(happenings.flatMap(toTransition)), matrix: toMatrix(happenings) };
}

/** An event as arrows and rows name it: an operator's choices by themselves. */
function labelOf(event: RunEvent): string {
  return event.type === "OperatorDecided" ? event.choice : event.type;
}

/** The name under which a status is drawn: the waits for somebody outside are one box, the ends are three. */
function boxOf(status: Status): string {
  return status === "waiting_operator" || !status.startsWith("waiting_") ? status : "waiting";
}

function toTransition({ before, by, after }: Happening): readonly Transition[] {
  if (by === null || boxOf(before.status) === boxOf(after.status)) return [];
  const marked = before.pauseRequestedAt !== null || before.lostAt !== null || before.openAttempts > 0;
  const label = labelOf(by);
  return [{ from: boxOf(before.status), to: boxOf(after.status), label, type: by.type, ordinary: !marked }];
}

/** Each transition once; it is ordinary if it comes about in the ordinary course as well. */
function distinct(all: readonly Transition[]): readonly Transition[] {
  const keyOf = ({ from, to, label }: Transition) => `${from} ${to} ${label}`;
  const found = new Map<string, Transition>();
  for (const transition of all) {
    const before = found.get(keyOf(transition));
    found.set(keyOf(transition), { ...transition, ordinary: transition.ordinary || before?.ordinary === true });
  }
  return [...found.values()].sort((left, right) => order(left) - order(right) || (left.label < right.label ? -1 : 1));
}

function order({ from, to }: Transition): number {
  const boxes = STATUSES.map(boxOf);
  return boxes.indexOf(from) * boxes.length + boxes.indexOf(to);
}

function toMatrix(happenings: readonly Happening[]): readonly MatrixRow[] {
  const rows = Map.groupBy(ALL_EVENTS, labelOf);
  return [...rows].map(([label, events]) => {
    const own = happenings.filter(({ by }) => by !== null && labelOf(by) === label);
    return { label, cells: GROUPS.map((group) => cellOf(group, events, own)) };
  });
}

/** `.`, `=` or `!rule` as the table has it; for a move, all that can come of it. */
function cellOf({ statuses }: Group, events: readonly RunEvent[], happenings: readonly Happening[]): string {
  const named: readonly Status[] = statuses;
  const cells = new Set<Cell>(named.flatMap((status) => events.map((event) => cellFor(status, event))));
  const isMove = [...cells].some((cell) => cell !== "." && cell !== "=" && !cell.startsWith("!"));
  if (!isMove) return [...cells].join(", ");
  const outcomes = happenings.flatMap(({ before, by }) => {
    if (by === null || !named.includes(before.status)) return [];
    const decision = reduce(before, by, { kind: raiserOf(by), id: "somebody" });
    if (decision.verdict === "moved") return [decision.next.status];
    return [decision.verdict === "refused" ? `!${decision.rule}` : decision.verdict === "recorded" ? "=" : "."];
  });
  const known = [...STATUSES, "=", "."];
  return [...new Set(outcomes)].sort((left, right) => rank(known, left) - rank(known, right)).join(", ");
}

function rank(known: readonly string[], outcome: string): number {
  const index = known.indexOf(outcome);
  return index === -1 ? known.length : index;
}
