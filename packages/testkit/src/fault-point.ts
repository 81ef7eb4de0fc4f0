/** Something that is about to leave the process, as data: another process can send it, later than it was meant. */
export type Sending =
  | { readonly kind: "statement"; readonly text: string; readonly values: readonly unknown[] }
  | {
      readonly kind: "request";
      readonly url: string;
      readonly method: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: string | null;
    };

/** A place that a program passes. */
export interface FaultPoint {
  /** Its place in the order of all that were passed; 1 for the first. */
  readonly number: number;
  /** What was passed: "statement:commit_steps:sent", "tool:send_refund:after", "model:before", "provider:reply". */
  readonly name: string;
  /** What leaves the process next, at the `sent` of a statement and the `request` of a fetch; else null. */
  readonly sending: Sending | null;
}

/**
 * What happens at a point. One that throws makes what the point belongs to fail with that error: before it was sent it
 * is not sent; after its answer came the answer is lost, and a statement's connection is closed. One that never
 * resolves hangs there; one that resolves lets the program go on.
 */
export type Fault = (point: FaultPoint) => void | Promise<void>;

/** Passes a point. Rejects where the fault there fails what the point belongs to. */
export type Reach = (name: string, sending?: Sending | null) => Promise<void>;
