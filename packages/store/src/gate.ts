// Owns: how many statements of one process are under way at once. Does not own: what they are, nor what they share.
// I1  Whoever asks gets a place, in the order of asking.
// I2  A statement that waits for somebody else keeps nobody waiting: after its patience it gives up its place and goes on.

/** Lets only so many statements be under way; the others wait, and share the next. */
export interface Gate {
  /** Calls `go` once there is a place, with what gives that back: at once where one is free. `go` must not throw. */
  enter(go: (leave: () => void) => void): void;
}

export interface GateOptions {
  readonly places: number;
  /** How long a statement holds its place at most, in milliseconds. */
  readonly patienceMs: number;
}

/** Opens a gate. */
export function openGate({ places, patienceMs }: GateOptions): Gate {
  const queue: ((leave: () => void) => void)[] = [];
  let taken = 0;
  const admit = (go: (leave: () => void) => void): void => {
    taken += 1;
    let isIn = true;
    const leave = (): void => {
      if (!isIn) return;
      isIn = false;
      clearTimeout(timer);
      taken -= 1;
      const next = queue.shift();
      if (next !== undefined) admit(next);
    };
    const timer = setTimeout(leave, patienceMs).unref();
    go(leave);
  };
  return {
    enter: (go) => {
      if (taken < places) admit(go);
      else queue.push(go);
    },
  };
}
