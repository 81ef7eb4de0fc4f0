// Commits: each acknowledged one is there whole and in its place, each refused one is not, and each step has one that sent it.

import { canonicalJson, type JsonValue } from "@holdpoint/core";
import { isAcknowledged, isRefused, type Ledger, type Taken } from "./ledger.ts";
import type { StoredStep } from "./read-database.ts";
import { contentOf, isEqual, type Token, type View } from "./view.ts";

/** What is wrong with the commits and the steps, in words. */
export function wrongCommits(view: View): readonly string[] {
  return [
    ...view.tokens.flatMap((token) => wrongCommit(view, token)),
    ...wrongSteps(view),
    ...wrongPlaces(view.ledger),
  ];
}

function nameOf({ commit }: Token): string {
  return `the commit of run ${commit.runId} behind step ${commit.stepSeq} by ${commit.workerId}`;
}

function wrongCommit(view: View, token: Token): readonly string[] {
  const { sent, is } = token;
  const of = nameOf(token);
  return [
    ...(is === "torn" ? [`${of} is there in part`] : []),
    ...(isRefused(sent) && is !== "absent" ? [`${of} was refused and is there`] : []),
    ...sent.answers.flatMap((answer) => (answer.says === "yes" ? wrongAnswer(token, answer.of) : [])),
    ...(is === "there" ? wrongTraces(view, token) : []),
  ];
}

/** What was answered says what is there. */
function wrongAnswer(token: Token, { stepSeq, started }: Taken): readonly string[] {
  const { commit, is } = token;
  const of = nameOf(token);
  const expected = commit.stepSeq + commit.steps.length + (started ? 1 : 0);
  const isLost = (commit.steps.length > 0 || started) && is !== "there";
  return [
    ...(isLost ? [`${of} was acknowledged and is ${is}`] : []),
    ...(started === token.started ? [] : [`${of} was told ${started} of its start, which is ${token.started}`]),
    ...(stepSeq === expected ? [] : [`${of} was told of step ${stepSeq} where it had made ${expected}`]),
  ];
}

/** What came with the steps is there with them. */
function wrongTraces({ attempts, steps }: View, token: Token): readonly string[] {
  const { commit, started } = token;
  const of = nameOf(token);
  const intent = steps.get(commit.runId)?.[commit.stepSeq + commit.steps.length];
  const isIntentThere = intent !== undefined && commit.start !== null && isEqual(intent.body, commit.start.body);
  return [
    ...(started && !isIntentThere ? [`${of} has its attempt and not its intent`] : []),
    ...(commit.settles ?? [])
      .filter(({ attemptId, outcome }) => attempts.get(attemptId)?.outcome !== outcome)
      .map(({ attemptId, outcome }) => `${of} settled attempt ${attemptId} ${outcome}, and it is not`),
  ];
}

/** How many have sent each stored step, by its run and number. */
function sendersOf({ ledger, stored, tokens }: View): ReadonlyMap<string, number> {
  const ofCommits = tokens
    .filter(({ is }) => is === "there")
    .flatMap(({ commit, started }) => places(commit.runId, commit.stepSeq, commit.steps.length + (started ? 1 : 0)));
  const made = new Set(stored.transitions.map(({ reason }) => reason));
  const ofMoves = ledger.moves
    .filter(({ what }) => made.has(what.reason))
    .flatMap(({ what: { run, writes } }) => places(run.id, run.stepSeq, writes?.steps?.length ?? 0));
  const senders = new Map<string, number>();
  for (const place of [...ofCommits, ...ofMoves]) senders.set(place, (senders.get(place) ?? 0) + 1);
  return senders;
}

function places(runId: string, behind: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `${runId} ${behind + n + 1}`);
}

/** Each stored step stands at its number, and has one that sent it. */
function wrongSteps(view: View): readonly string[] {
  const senders = sendersOf(view);
  const foreign = Map.groupBy(view.ledger.foreign, ({ runId }) => runId);
  const wrongStep = (step: StoredStep, index: number): readonly string[] => {
    const { run_id: runId, seq, body } = step;
    const count = senders.get(`${runId} ${seq}`) ?? 0;
    const isForeign = (foreign.get(runId) ?? []).some((each) => isEqual(each.body, body));
    return [
      ...(seq === index + 1 ? [] : [`run ${runId}: step ${seq} is the ${index + 1}th`]),
      ...(count === 0 && !isForeign ? [`run ${runId}: nobody has sent step ${seq}`] : []),
      ...(count > 1 ? [`run ${runId}: step ${seq} stands for ${count} commits`] : []),
    ];
  };
  return [...view.steps].flatMap(([runId, own]) => [
    ...own.flatMap(wrongStep),
    ...(isTwice(own) ? [`run ${runId}: a step is there twice`] : []),
    ...wrongSettled(view, runId),
  ]);
}

/** Replies and results have texts that nobody else has. */
function isTwice(steps: readonly StoredStep[]): boolean {
  const texts = steps
    .filter(({ body }) => body.kind === "model_reply" || body.kind === "tool_result")
    .map(({ body }) => canonicalJson(body as JsonValue));
  return new Set(texts).size < texts.length;
}

/** Steps that came with an owner's move stand where that said. */
function wrongSettled({ ledger, stored, steps }: View, runId: string): readonly string[] {
  const made = new Set(stored.transitions.map(({ reason }) => reason));
  return ledger.moves
    .filter(({ what }) => what.run.id === runId && made.has(what.reason))
    .flatMap(({ what: { run, writes } }) =>
      (writes?.steps ?? []).flatMap((body, index) => {
        const found = steps.get(runId)?.[run.stepSeq + index];
        const isThere = found !== undefined && isEqual(found.body, body);
        return isThere ? [] : [`run ${runId}: step ${run.stepSeq + index + 1} is not what its owner's move brought`];
      }),
    );
}

/** No place of a run was ever given to two. */
function wrongPlaces({ commits }: Ledger): readonly string[] {
  const places = new Map<string, string>();
  return commits.flatMap((sent) => {
    if (!isAcknowledged(sent)) return [];
    const { runId, stepSeq, steps } = sent.what;
    const content = contentOf(sent.what);
    return steps.flatMap((_, index) => {
      const place = `${runId} ${stepSeq + index + 1}`;
      const before = places.get(place) ?? content;
      places.set(place, before);
      return before === content ? [] : [`step ${stepSeq + index + 1} of run ${runId} was acknowledged to two`];
    });
  });
}
