// What people were answered, and what was said, against what is there.

import { differences } from "./differences.ts";
import { isAcknowledged, isRefused, type Ledger } from "./ledger.ts";
import type { Stored } from "./read-database.ts";

export interface Outside {
  readonly ledger: Ledger;
  readonly stored: Stored;
  /** What the commits that are there have said, each in order. */
  readonly said: readonly (readonly string[])[];
}

/** What is wrong with runs, facts, messages, stops and decisions, in words. */
export function wrongOutside(outside: Outside): readonly string[] {
  return [
    ...wrongRuns(outside),
    ...wrongFacts(outside),
    ...wrongMessages(outside),
    ...wrongStops(outside),
    ...wrongDecisions(outside),
    ...wrongHistories(outside),
  ];
}

function wrongRuns({ ledger, stored }: Outside): readonly string[] {
  const goals = stored.runs.map(({ goal }) => goal);
  const expected = ledger.runs.flatMap((sent) =>
    isAcknowledged(sent) || goals.includes(sent.what.goal) ? [sent.what.goal] : [],
  );
  const live = stored.runs.filter(({ ended }) => !ended);
  return [...differences("run", expected, goals), ...live.map(({ id, status }) => `run ${id} is stranded: ${status}`)];
}

function wrongFacts({ ledger, stored }: Outside): readonly string[] {
  const byText = Map.groupBy(
    stored.facts.filter(({ text }) => text !== null),
    ({ text }) => text ?? "",
  );
  const wrong = ledger.facts.flatMap((sent) => wrongFact(stored, sent, byText.get(sent.what.text) ?? []));
  for (const { what } of ledger.facts) byText.delete(what.text);
  return [...wrong, ...[...byText.keys()].map((text) => `nobody has said ${text}`)];
}

function wrongFact({ steps }: Stored, sent: Ledger["facts"][number], there: Stored["facts"]): readonly string[] {
  const { runId, text } = sent.what;
  const read = steps.filter(({ run_id, body }) => run_id === runId && body.kind === "message" && body.text === text);
  const readIn = there.filter(({ read_in_step }) => read_in_step !== null);
  const isCounted = isAcknowledged(sent) ? there.length === 1 : there.length <= 1;
  return [
    ...(isCounted ? [] : [`fact ${text} is there ${there.length} times`]),
    ...(isRefused(sent) && there.length > 0 ? [`fact ${text} was refused and is there`] : []),
    ...(read.length === readIn.length
      ? []
      : [`fact ${text} is in ${read.length} steps, and read ${readIn.length} times`]),
  ];
}

function wrongMessages({ stored, said }: Outside): readonly string[] {
  const expected = [
    ...stored.runs.map(({ goal }) => goal),
    ...stored.facts.flatMap(({ text }) => (text === null ? [] : [text])),
    ...said.flat(),
  ];
  const texts = stored.messages.map(({ text }) => text);
  const wrong = [...differences("message", expected, texts)];
  for (const [session, messages] of Map.groupBy(stored.messages, ({ session_id }) => session_id)) {
    const last = stored.sessions.find(({ id }) => id === session)?.message_seq;
    if (messages.some(({ seq }, index) => seq !== index + 1) || last !== messages.length) {
      wrong.push(`the messages of session ${session} have a gap`);
    }
  }
  const places = new Map(stored.messages.map(({ text, session_id, seq }) => [text, { session_id, seq }]));
  for (const group of said) {
    const [first] = group.map((text) => places.get(text));
    const isInOrder = group.every((text, index) => places.get(text)?.seq === (first?.seq ?? 0) + index);
    if (!isInOrder) wrong.push(`${group.join(", ")} were said together, and stand apart`);
  }
  return wrong;
}

/** Who was told that a run stops never finds it completed. */
function wrongStops({ ledger, stored }: Outside): readonly string[] {
  const runs = new Map(stored.runs.map((run) => [run.id, run]));
  return ledger.cancels.filter(isAcknowledged).flatMap(({ what: runId }) => {
    const run = runs.get(runId);
    return run?.cancel_requested === true && run.status === "cancelled"
      ? []
      : [`run ${runId} was told to stop, and is ${run?.status}`];
  });
}

function wrongDecisions({ ledger, stored }: Outside): readonly string[] {
  return [...Map.groupBy(ledger.decisions, ({ what }) => `${what.approvalId} by ${what.by}`)].flatMap(([of, sent]) => {
    const there = stored.decisions.filter(({ approval_id, actor_id }) => `${approval_id} by ${actor_id}` === of).length;
    const told = sent.filter(isAcknowledged).length;
    return there <= 1 && told <= 1 && there >= told
      ? []
      : [`decision of ${of} was told ${told} times, and is there ${there} times`];
  });
}

/** A run has been as it was once seen. */
function wrongHistories({ ledger, stored }: Outside): readonly string[] {
  const status = new Map(stored.transitions.map(({ run_id, seq, to_status }) => [`${run_id} ${seq}`, to_status]));
  return ledger.seen
    .filter((seen) => status.get(`${seen.runId} ${seen.version}`) !== seen.status)
    .map(
      ({ runId, version, status: was }) =>
        `run ${runId} was seen ${was} in version ${version}, which is not in its history`,
    );
}
