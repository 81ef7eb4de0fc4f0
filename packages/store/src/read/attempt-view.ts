/** One try of a call. Without an outcome it is open: nobody knows yet how it ended. */
export interface AttemptView {
  /** Null for a read's try: it is over when it is stored, and nobody has to name it. */
  readonly id: string | null;
  readonly number: number;
  readonly workerId: string;
  /** What the effect is known by outside. */
  readonly externalRef: string | null;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  readonly endedAtMs: number | null;
  readonly outcome: string | null;
  readonly settledBy: string | null;
  readonly errorClass: string | null;
  readonly errorCode: string | null;
  readonly lookUps: number;
  /** When a worker that had been replaced reported about it. */
  readonly lateAtMs: number | null;
}
