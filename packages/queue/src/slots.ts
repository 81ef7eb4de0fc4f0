/** The places for handlers that a consumer's queues share. Whoever came first gets the next one. */
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @throws {RangeError} `count` is not a positive integer. */
  constructor(count: number) {
    if (!Number.isSafeInteger(count) || count < 1) throw new RangeError("concurrency must be a positive integer");
    this.#free = count;
  }

  /** Places that nobody has and nobody waits for. */
  get free(): number {
    return this.#free;
  }

  /** Takes a free place, if there is one. */
  tryAcquire(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Waits for a place and takes it. */
  async acquire(): Promise<void> {
    if (!this.tryAcquire()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
