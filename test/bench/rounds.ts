import type { Contestant } from "./contestant.ts";
import { product } from "./product.ts";
import type { Stage } from "./stage.ts";
import { strawMan } from "./straw-man.ts";
import { playTrial, type Trial, type TrialOptions } from "./trial.ts";

/** One round: the same trial, played by both. */
export interface Round<Played = Trial> {
  readonly product: Played;
  readonly strawMan: Played;
}

/**
 * Plays rounds of both contestants, one right after the other and in alternating order, so that what else goes on on the
 * machine hits both alike.
 */
export async function playRounds<Played>(
  stage: Stage,
  play: (contestant: Contestant) => Promise<Played>,
): Promise<readonly Round<Played>[]> {
  const rounds: Round<Played>[] = [];
  for (let index = 0; index < stage.settings.rounds; index += 1) {
    if (index % 2 === 0) {
      const first = await play(strawMan);
      rounds.push({ product: await play(product), strawMan: first });
    } else {
      const first = await play(product);
      rounds.push({ product: first, strawMan: await play(strawMan) });
    }
  }
  return rounds;
}

/** Rounds of one trial, as `playTrial` plays it. */
export function playTrials(stage: Stage, options: TrialOptions): Promise<readonly Round[]> {
  return playRounds(stage, (contestant) => playTrial(stage, contestant, options));
}
