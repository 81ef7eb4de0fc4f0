// What was answered against what is there. Everything that was acknowledged is there, once and in its place; what was refused
// is not; and nothing is there that nobody has sent.

import { differences } from "./differences.ts";
import { wrongClaims } from "./judge-claims.ts";
import { wrongCommits } from "./judge-commits.ts";
import { wrongOutside } from "./judge-outside.ts";
import { isAcknowledged, isRefused, type Ledger } from "./ledger.ts";
import type { Stored } from "./read-database.ts";
import { attemptIdOf, type Token, type View, viewOf } from "./view.ts";

/** What is wrong, in words; empty where all is as it was answered. */
export function judge(ledger: Ledger, stored: Stored): readonly string[] {
  const view = viewOf(ledger, stored);
  return [
    ...ledger.wrong,
    ...wrongCommits(view),
    ...wrongMoves(ledger, stored),
    ...wrongAttempts(view),
    ...wrongCalls(view),
    ...wrongClaims(view),
    ...wrongOutside({
      ledger,
      stored,
      said: view.tokens.flatMap((token) => (token.is === "there" ? saidIn(token) : [])),
    }),
  ];
}

const OWNERS: ReadonlySet<string> = new Set(["Held", "Released", "EffectUnknown", "Ended"]);

function wrongMoves({ moves }: Ledger, { transitions }: Stored): readonly string[] {
  const byReason = Map.groupBy(transitions, ({ reason }) => reason ?? "");
  const wrong = moves.flatMap((sent): readonly string[] => {
    const { run, events, reason, actor } = sent.what;
    const made = byReason.get(reason) ?? [];
    const of = `the move of run ${run.id} from version ${run.version} by ${actor.id}`;
    if (made.length === 0) return isAcknowledged(sent) ? [`${of} was accepted and is not there`] : [];
    if (isRefused(sent)) return [`${of} was refused and is there`];
    const isWhole =
      made.length === events.length &&
      made.every(
        ({ seq, event, actor_id, epoch }, index) =>
          seq === run.version + index + 1 &&
          event === events[index]?.type &&
          actor_id === actor.id &&
          epoch === run.epoch,
      );
    return isWhole ? [] : [`${of} is there as ${JSON.stringify(made)}`];
  });
  const known = new Set(moves.map(({ what }) => what.reason));
  const strange = transitions.filter(({ event, reason }) => OWNERS.has(event) && !known.has(reason ?? ""));
  return [...wrong, ...strange.map(({ run_id, seq }) => `run ${run_id}: nobody has sent transition ${seq}`)];
}

/** Each intent has one attempt, which is the one that its owner has named. */
function wrongAttempts({ stored, steps, tokens }: View): readonly string[] {
  const starts = new Map(tokens.map(({ commit }) => [attemptIdOf(commit), commit]));
  const strange = stored.attempts.flatMap(({ id, run_id, worker, epoch, call_id, outcome }): readonly string[] => {
    const commit = starts.get(id);
    const isOwn =
      commit?.runId === run_id &&
      commit.workerId === worker &&
      commit.epoch === epoch &&
      commit.start?.body.callId === call_id;
    return [
      ...(isOwn ? [] : [`nobody has sent attempt ${id} of run ${run_id}`]),
      ...(outcome === null ? [`attempt ${id} of run ${run_id} is open at the end`] : []),
    ];
  });
  const ofRun = Map.groupBy(stored.attempts, ({ run_id }) => run_id);
  const uneven = stored.runs.flatMap(({ id }) => {
    const intents = (steps.get(id) ?? []).filter(({ body }) => body.kind === "intent").length;
    const attempts = ofRun.get(id)?.length ?? 0;
    return intents === attempts ? [] : [`run ${id} has ${intents} intents and ${attempts} attempts`];
  });
  return [...strange, ...uneven];
}

function wrongCalls({ stored, tokens }: View): readonly string[] {
  const expected = tokens.flatMap(({ commit, is }) => (is === "there" ? (commit.calls ?? []).map(({ id }) => id) : []));
  const there = stored.calls.map(({ id }) => id);
  return differences("call", expected, there);
}

/** What a commit said in its session, in order. */
function saidIn({ commit }: Token): readonly (readonly string[])[] {
  return [(commit.messages ?? []).map(({ text }) => text)];
}
