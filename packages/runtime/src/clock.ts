/** The process's own clocks. They decide nothing but when this process stops by itself; instants come from the database. */
export interface Clock {
  /** Milliseconds that only grow; does not count time that the machine was suspended. */
  monotonicMs(): number;
  /** Milliseconds since the epoch; may jump. */
  wallMs(): number;
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
};
