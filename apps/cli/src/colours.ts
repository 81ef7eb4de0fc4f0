import pc from "picocolors";

/** The few colours that are used; each means one thing. */
export interface Colours {
  readonly title: (text: string) => string;
  readonly quiet: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  /** Somebody has to do something. */
  readonly waiting: (text: string) => string;
}

/** Colours for a terminal, or none. */
export function coloursFor(enabled: boolean): Colours {
  const { bold, dim, green, red, yellow } = pc.createColors(enabled);
  return { title: bold, quiet: dim, good: green, bad: red, waiting: yellow };
}
