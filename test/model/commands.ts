// What may happen in a sequence, as values that fast-check makes and shrinks.

import fc from "fast-check";
import type { Fault } from "./mortal-store.ts";

/** Numbers choose among what is there when the command is carried out: workers, runs, sessions. */
export type Command =
  | { readonly do: "submit"; readonly session: number }
  | { readonly do: "claim"; readonly worker: number; readonly every: number }
  | { readonly do: "work"; readonly worker: number; readonly count: number; readonly rolls: readonly number[] }
  | { readonly do: "say"; readonly run: number; readonly kind: "message" | "answer" }
  | { readonly do: "decide"; readonly decision: "approve" | "reject"; readonly twice: boolean }
  | { readonly do: "cancel" | "pause" | "resume" | "take_over" | "mark_done"; readonly run: number }
  | { readonly do: "policy" | "sweep" | "wait" }
  /** Somebody locks a row for so many round trips. */
  | { readonly do: "hold"; readonly row: "run" | "session"; readonly index: number; readonly trips: number }
  | { readonly do: "fault"; readonly process: number; readonly faults: readonly Fault[] }
  /** All connections of a process break, by its own end or by the server's. */
  | { readonly do: "cut"; readonly process: number; readonly by: "socket" | "server" }
  /** A process is killed; another takes its place. */
  | { readonly do: "kill"; readonly worker: number; readonly seen: boolean }
  /** A process that lives is taken for gone. */
  | { readonly do: "mistake"; readonly worker: number; readonly by: "supervisor" | "lease" };

/** What is begun together. */
export type Round = readonly Command[];

const index = fc.nat({ max: 99 });
const rolls = fc.array(fc.nat({ max: 9_999 }), { minLength: 12, maxLength: 12 });

const work = fc.record({
  do: fc.constant("work" as const),
  // Three is all of them.
  worker: fc.nat({ max: 3 }),
  count: fc.integer({ min: 1, max: 5 }),
  rolls,
});

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 12, arbitrary: work },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("claim" as const), worker: index, every: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("submit" as const), session: index }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("say" as const), run: index, kind: fc.constantFrom("message", "answer") }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("decide" as const),
      decision: fc.constantFrom("approve", "approve", "reject"),
      twice: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("cancel", "pause", "resume", "take_over", "take_over", "mark_done"),
      run: index,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("policy", "sweep", "sweep", "wait") }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("hold" as const),
      row: fc.constantFrom("run", "run", "session"),
      index,
      trips: fc.integer({ min: 1, max: 150 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      process: index,
      faults: fc.array(fc.constantFrom<Fault>("unsent", "unanswered", "cut"), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("cut" as const), process: index, by: fc.constantFrom("socket", "server") }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("kill" as const), worker: index, seen: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("mistake" as const),
      worker: index,
      by: fc.constantFrom("supervisor", "lease"),
    }),
  },
);

/** A sequence: rounds, one after the other. */
export const sequences: fc.Arbitrary<readonly Round[]> = fc.array(fc.array(command, { minLength: 2, maxLength: 8 }), {
  minLength: 3,
  maxLength: 10,
});
