// Claims: each gives one worker an epoch, and all that was known to be stored when it was asked for.

import type { LoadedRun } from "@holdpoint/store";
import type { Sent, SentClaim } from "./ledger.ts";
import type { StoredTransition } from "./read-database.ts";
import { isEqual, type View } from "./view.ts";

type Claim = Sent<SentClaim, readonly LoadedRun[]>;

/** What is wrong with the claims, in words. */
export function wrongClaims(view: View): readonly string[] {
  const { ledger, stored } = view;
  const claimed = stored.transitions.filter(({ event }) => event === "Claimed");
  const epochs = Map.groupBy(claimed, ({ run_id, epoch }) => `epoch ${epoch} of run ${run_id}`);
  return [
    ...[...epochs]
      .filter(([, same]) => same.length > 1)
      .map(([epoch, same]) => `${epoch} was given ${same.length} times`),
    ...claimed
      .filter((each) => !isExplained(ledger.claims, each))
      .map(({ run_id, actor_id }) => {
        return `${actor_id} was not told of its claim of run ${run_id}`;
      }),
    ...ledger.claims.flatMap(({ what, answers }) =>
      answers.flatMap((answer) =>
        answer.says === "yes" ? answer.of.flatMap((loaded) => wrongLoad(view, what, loaded)) : [],
      ),
    ),
  ];
}

/** Whoever claimed was told so, or was left in doubt. */
function isExplained(claims: readonly Claim[], { run_id, epoch, actor_id }: StoredTransition): boolean {
  const asked = claims.filter(({ what }) => what.workerId === actor_id && what.runIds.includes(run_id));
  const isTold = asked.some(({ answers }) =>
    answers.some(
      (answer) => answer.says === "yes" && answer.of.some(({ run }) => run.id === run_id && run.epoch === epoch),
    ),
  );
  return (
    isTold ||
    asked.some(({ sends, answers }) => answers.length < sends || answers.some(({ says }) => says === "unknown"))
  );
}

function wrongLoad({ ledger, stored, steps }: View, what: SentClaim, { run, steps: loaded, unread }: LoadedRun) {
  const of = `the claim of run ${run.id} under epoch ${run.epoch}`;
  const isThere = stored.transitions.some(
    ({ event, run_id, epoch, actor_id }) =>
      event === "Claimed" && run_id === run.id && epoch === run.epoch && actor_id === what.workerId,
  );
  const beginning = (steps.get(run.id) ?? []).slice(0, run.stepSeq);
  const isBeginning =
    loaded.length === run.stepSeq && beginning.every(({ body }, n) => isEqual(body, loaded[n]?.body ?? body));
  const unheard = ledger.facts
    .filter(({ what: { runId, text } }) => runId === run.id && what.knownFacts.includes(text))
    .filter(
      ({ what: { text } }) => ![...unread, ...loaded].some(({ body }) => body.kind === "message" && body.text === text),
    );
  return [
    ...(isThere ? [] : [`${of} is not there`]),
    ...(isBeginning ? [] : [`${of} loaded other steps than are there`]),
    ...(run.stepSeq < (what.knownSteps.get(run.id) ?? 0) ? [`${of} loaded fewer steps than were acknowledged`] : []),
    ...unheard.map(({ what: { text } }) => `${of} does not know what was said before: ${text}`),
  ];
}
