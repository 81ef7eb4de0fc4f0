// Types and not interfaces: only so are they JSON to the compiler, which functions may pass on.

/** Why a gate has sent work back. */
export type Feedback = {
  readonly gate: string;
  /** Which time the gate had run. */
  readonly round: number;
  readonly text: string;
};

/** What a gate says. */
export type Verdict = {
  readonly pass: boolean;
  /** Why; whoever works on it again is given it. */
  readonly feedback: string;
};

/** A scope, its types forgotten. */
export interface ScopeValues {
  readonly input: unknown;
  readonly item: unknown;
  readonly index: number | null;
  readonly round: number;
  readonly feedback: Feedback | null;
  readonly previous: unknown;
  output(name: string): unknown;
  need(name: string): unknown;
}
